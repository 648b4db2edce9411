#include "program.h"

#include <stdbool.h>

#include "machine.h"
#include "model.h"
#include "processor_state.h"
#ifdef __x86_64__
#include "program64.h"
#endif
#include "random.h"
#include "rules.h"
#include "writer.h"

// CMP of two registers, which makes all flags known that a jump may ask for.
static void put_compare(struct writer* w) {
  put8(w, 0x38);
  put8(w, 0xc0 | random_below(64));
}

// ADD, OR, ADC, SBB, AND, SUB, XOR and CMP in their six forms, and the decimal adjustments.
static void put_arithmetic(struct writer* w) {
  static const struct rule plain = {0, 0, kModrm, 0, kAll, 0};
  static const uint8_t decimal[] = {0x27, 0x2f, 0x37, 0x3f};
  const uint32_t form = random_below(w->kind->bits64 ? 6 : 7), operation = random_below(8);
  const bool locked = form < 2 && operation != 7 && one_in(8);
  put_prefixes(w, &plain, locked);
  if (form == 6) {
    put8(w, decimal[random_below(4)]);
    return put_compare(w);
  }
  put8(w, operation << 3 | form);
  if (form < 4) return put_modrm(w, kAll, locked);
  if (form == 4) return put8(w, random32());
  put_operand(w, random32());
}

// MOV CH, 0: counts of 16 bits stay small, so that few strings reach FFFF.
static void put_small_count(struct writer* w) {
  put8(w, 0xb5);
  put8(w, 0);
}

static void put_rule(struct writer* w, const struct rule* rule) {
  if ((rule->flags & kRepeats) != 0 && !w->kind->wide) put_small_count(w);
  const bool locked = (rule->flags & kLock) != 0 && one_in(8);
  put_prefixes(w, rule, locked);
  uint8_t opcode = (uint8_t)(rule->first + random_below(rule->last - rule->first + 1u));
  // 64-bit mode lacks opcode 82; the emulator fetches more of it than it decodes.
  if (w->kind->bits64 && opcode == 0x82 && (rule->flags & kSecond) == 0) opcode = 0x83;
  while ((rule->flags & kNoStackReg) != 0 && !may_be_named(w, opcode & 7, kRexB)) --opcode;
  w->far_operand = (rule->flags & kSecond) != 0 && (opcode & 0xe7) == 0xa3;  // BT and its like
  if ((rule->flags & kSecond) != 0) put8(w, 0x0f);
  put8(w, opcode);
  put_rest(w, form_of(rule, opcode), opcode, rule->digits, locked);
  w->far_operand = false;
  if ((rule->flags & kVague) != 0) put_compare(w);
}

// MOV AX, selector and MOV to one of ES, DS, FS, GS; or PUSH and POP.
static void put_segment_load(struct writer* w) {
  static const uint8_t registers[] = {0, 3, 4, 5};
  const uint16_t selector = random_selector();
  if (one_in(2)) {
    put_selector(w, selector);
    put8(w, 0x8e);
    put8(w, 0xc0 | registers[random_below(4)] << 3);
    return;
  }
  put_push(w, selector);
  if (one_in(2) && !w->kind->bits64) {
    put8(w, one_in(2) ? 0x07 : 0x1f);
  } else {
    put8(w, 0x0f);
    put8(w, one_in(2) ? 0xa1 : 0xa9);
  }
}

// LAR, LSL, VERR or VERW of any selector; at level 0 now and then LLDT or LTR.
static void put_descriptor_use(struct writer* w) {
  static const uint16_t loaded[] = {kLocalTable, kLocalTable, 0, kOtherTask, kAbsent, kSelectors};
  enum { kLldt = 2, kLtr = 3, kVerr = 4 };
  if (w->kind->virtual_8086) return;
  const bool loads = w->kind->supervisor && one_in(3);
  const uint32_t load = one_in(2) ? kLldt : kLtr;
  uint32_t selector = loads ? loaded[random_below(6)] : random_below(kSelectors + 8);
  if (loads && load == kLtr && selector == 0) selector = kOtherTask;  // the emulator takes it
  put_selector(w, selector);
  put8(w, 0x0f);
  if (!loads && one_in(2)) {
    put8(w, 0x02 + random_below(2));
    return put8(w, 0xc0 | (random_register(w) & 3) << 3);
  }
  put8(w, 0x00);
  put8(w, 0xc0 | (loads ? load : kVerr + random_below(2)) << 3);
}

// In 64-bit mode far pointers are in memory: here in front of the instruction, which is jumped to.
enum { kPointerBytes = 6 };
static void put_jump_over_pointer(struct writer* w) {
  put8(w, 0xeb);
  put8(w, kPointerBytes);
}
static void put_far_by_pointer(struct writer* w, bool call) {
  enum { kOwnBytes = 6, kCall = 3, kJump = 5, kRelative = 5 };
  put8(w, 0xff);
  put8(w, (call ? kCall : kJump) << 3 | kRelative);
  put32(w, (uint32_t) - (kPointerBytes + kOwnBytes));
}

// JMP or CALL to a code segment like this one, of either table. CALL where the stack does not
// fault: the emulator may have stored CS by then.
static void put_far_jump(struct writer* w) {
  static const uint16_t selectors[2][2][2] = {
      {{kUserCode16, kLocalCode16}, {kUserCode, kLocalCode}},
      {{kKernelCode16, kLocalKernelCode16}, {kKernelCode32, kLocalKernelCode}}};
  if (w->kind->virtual_8086) return;
  if (w->kind->bits64) {
    static const uint16_t wide_selectors[2][2] = {{kUserCode64, kLocalCode64},
                                                  {kKernelCode, kKernelCode}};
    put_jump_over_pointer(w);
    put_target(w, 4, true);
    put16(w, wide_selectors[w->kind->supervisor][one_in(3) ? 0 : 1]);
    return put_far_by_pointer(w, w->kind->supervisor && one_in(2));
  }
  put8(w, w->kind->supervisor && one_in(2) ? 0x9a : 0xea);
  put_target(w, w->kind->wide ? 4 : 2, true);
  put16(w, selectors[w->kind->supervisor][w->kind->wide][one_in(3) ? 0 : 1]);
}

// Ports where nothing is, and one of the timer's gate.
static void put_port_access(struct writer* w) {
  static const uint8_t ports[] = {0xec, 0xed, 0xee, 0xef, 0x61, 0x71, 0xe4};
  if (one_in(2)) put8(w, 0x66);
  put8(w, 0xe4 + random_below(2));
  put8(w, ports[random_below(sizeof ports)]);
}

// The same by DX, and of memory.
static void put_string_port_access(struct writer* w) {
  static const uint8_t opcodes[] = {0xec, 0xed, 0xee, 0xef, 0x6c, 0x6d, 0x6e, 0x6f};
  if (w->kind->wide) put8(w, 0x66);
  put8(w, 0xba);
  put16(w, 0xec + random_below(4));
  put8(w, opcodes[random_below(8)]);
}

// A call through a gate, to a segment that is refused, or to the next instruction.
static void put_far_call(struct writer* w) {
  if (w->kind->virtual_8086) return;  // the emulator pushes with the kernel's rights
  static const uint16_t refused[] = {kTask, kAbsent, kUserData, kSelectors, kLocalKernelCode | 3};
  const uint32_t which = random_below(4);
  uint16_t selector = which == 0   ? refused[random_below(5)]
                      : which == 1 ? kGate2
                      : one_in(2)  ? kGate
                                   : kLocalGate;
  const bool jump = !w->kind->supervisor && one_in(4);  // what a gate names returns
  if (w->kind->bits64) {
    put_jump_over_pointer(w);
    put32(w, random32());
    put16(w, selector);
    return put_far_by_pointer(w, !jump);
  }
  put8(w, jump ? 0xea : 0x9a);
  if (w->kind->wide) {
    put32(w, random32());
  } else {
    put16(w, random32());
  }
  put16(w, selector);
}

struct choice choice;

void choose_instructions(void) {
#ifdef __x86_64__
  choice.saves_fpu = one_in(2);
  choice.enters_from_compatibility = !is_of_amd();
  // Images have MXCSR, too, in which the emulator does not say that an operand was denormal: with
  // DAZ none is.
  const uint32_t mxcsr = choice.saves_fpu ? 0x1fc0 : 0x1f80;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#else
  choice.saves_fpu = has_xsave();
#endif
  choice.saves_extended_state = choice.saves_fpu && has_xsave();
}

// MMX and SSE without arithmetic, and without operands in memory that must be aligned: the emulator
// does not look.
static void put_vector(struct writer* w) {
  if (choice.saves_fpu) return;
  static const uint8_t opcodes[] = {0x6e, 0x7e, 0x6f, 0x7f, 0xfc, 0xdb,
                                    0xef, 0x10, 0x11, 0x16, 0x17};
  static const struct rule plain = {0, 0, kModrm, 0, kAll, 0};
  put_prefixes(w, &plain, false);
  // 66 makes other instructions of these, and W what is written of others.
  if (w->operand32 != w->kind->wide || w->rex != 0) put8(w, 0x90);
  w->rex = 0;
  w->whole_register = false;
  put8(w, 0x0f);
  const uint8_t opcode = opcodes[random_below(sizeof opcodes)];
  put8(w, opcode);
  put_modrm(w, kAll, opcode == 0x17);
}

// MOV EAX, priority; MOV CR8, RAX: the emulator takes bits that a processor refuses. Or MOV RAX,
// CR8.
static void put_priority(struct writer* w) {
  enum { kPriorities = 16 };
  const bool writes = one_in(2);
  if (writes) {
    put8(w, 0xb8);
    put32(w, random_below(kPriorities));
  }
  put8(w, kRex | kRexR);
  put8(w, 0x0f);
  put16(w, writes ? 0xc022 : 0xc020);
}

// Control registers as they are, with a bit or two changed that no program depends on.
static void put_control(struct writer* w) {
  enum { kEax = 0 };
  const uint32_t which = w->kind->controls ? random_below(6) : 5;
  w->rex = 0;
  if (w->kind->bits64 && one_in(6)) return put_priority(w);
  if (which == 5) {  // INVLPG
    put8(w, 0x0f);
    put8(w, 0x01);
    w->address32 = w->kind->wide;
    return put_memory(w, 7);
  }
  const uint32_t reg = which == 0 ? 3 : which < 3 ? 0 : 4;
  put8(w, 0x0f);
  put8(w, 0x20);
  put8(w, 0xc0 | reg << 3 | kEax);
  if (which == 2 || which == 4) {
    // XOR EAX, imm32: of CR0 TS, EM, WP; of CR4 TSD and PGE.
    static const uint32_t bits0[] = {8, 4, 1u << 16, 1u << 16};
    static const uint32_t bits4[] = {4, 0x80};
    if (!w->kind->wide) put8(w, 0x66);
    put8(w, 0x35);
    put32(w, reg == 0 ? bits0[random_below(4)] : bits4[random_below(2)]);
  }
  put8(w, 0x0f);
  put8(w, 0x22);
  put8(w, 0xc0 | reg << 3 | kEax);
  // The tables are not what EAX is to point to.
  if (!w->kind->wide) put8(w, 0x66);
  put8(w, 0xb8);
  put32(w, random_pointer());
}

// A page becomes another one. Without INVLPG where nothing can be held of it: if it was not there.
static void put_page_change(struct writer* w) {
  enum { kFirst = 20, kMov = 0xc7, kOr = 0x83 };  // behind all code
  const uint32_t linear = kTestLinear + ((kFirst + random_below(kTestPages - kFirst)) << 12);
  const uint32_t entry = (uint32_t)page_entry_address(linear);
#ifdef __x86_64__
  if (!w->kind->bits64) return;  // it names no more than the first of a page's addresses
#endif
  put_flat_segment(w);
  w->rex = kRex | kRexW;
  if (one_in(3)) {
    if (!w->kind->wide) put8(w, 0x66);
    put_absolute(w, false, kOr, 1, entry);
    return put8(w, kPresent);
  }
  if (!w->kind->wide) put8(w, 0x66);
  put_absolute(w, false, kMov, 0, entry);
  put32(w, (uint32_t)random_page(linear));
  w->rex = 0;
  put_absolute(w, true, 1, 7, linear);
#ifdef __x86_64__
  put_invalidation(w, kHighAlias + linear);
  put_invalidation(w, kClosedAlias + linear);
#endif
}

// MOV EAX, CR0; AND or OR of an immediate; MOV CR0, EAX.
static void put_cr0_change(struct writer* w, uint32_t opcode, uint32_t value) {
  put8(w, 0x0f);
  put16(w, 0xc020);
  if (!w->kind->wide) put8(w, 0x66);
  put8(w, opcode);
  put32(w, value);
  put8(w, 0x0f);
  put16(w, 0xc022);
}

// MOV r8, imm8 that the instruction before it changes: where it lies itself, or through other
// pages. Then CPUID stands in between (Intel SDM vol. 3, 11.6).
static void put_patch(struct writer* w) {
  enum { kMovByte = 0xc6, kMovWord = 0xc7, kAnd = 0x25, kOr = 0x0d, kWriteProtect = 1 << 16 };
  if (w->kind->virtual_8086) return;
  const bool itself = w->kind->controls && one_in(2), both = one_in(2);
  const uint32_t which = both ? 0 : random_below(2);
  const uint8_t code[] = {(uint8_t)(0xb0 | random_below(8)), (uint8_t)random32()};
  if (itself) put_cr0_change(w, kAnd, ~(uint32_t)kWriteProtect);
  put_flat_segment(w);
  w->rex = 0;
  if (both && w->kind->wide) put8(w, 0x66);
  put_absolute(w, false, both ? kMovWord : kMovByte, 0, 0);
  uint8_t* const address = w->at - 4;
  put8(w, code[which]);
  if (both) put8(w, code[1]);
  // A program of 64 bits may be at another of its addresses.
  if (!itself || w->kind->bits64) put16(w, 0xa20f);
  const uint32_t target = w->linear + (uint32_t)(w->at - w->first) + which;
  const uint32_t place = itself ? target : kAliasLinear + target - (w->linear & ~0xfffu);
  for (uint32_t k = 0; k < 4; ++k) address[k] = (uint8_t)(place >> 8 * k);
  put8(w, 0xb0 | random_below(8));
  put8(w, random32());
  if (itself) put_cr0_change(w, kOr, kWriteProtect);
}

// The same in 64-bit mode, where IRET finds a stack pointer, too.
static void put_return64(struct writer* w, uint32_t which) {
  static const uint8_t opcodes[] = {0xc3, 0xc2, 0xcb, 0xca, 0xcf};
  const bool supervisor = w->kind->supervisor;
  put_target_address(w, 0);
  if (which == 4) {
    put_push(w, supervisor ? one_in(2) ? 0 : kKernelData : kUserData);
    put8(w, 0x54);  // PUSH RSP
    put8(w, 0x9c);  // PUSHF
  }
  if (which >= 2) put_push(w, supervisor ? kKernelCode : one_in(2) ? kUserCode64 : kLocalCode64);
  put8(w, 0x50);  // PUSH RAX
  if (which >= 2) put8(w, kRex | kRexW);
  put8(w, opcodes[which]);
  if (which == 1 || which == 3) put16(w, random_below(16) * 8);
}

// PUSH of a target, and a way to go there: RET, or RET far and IRET with CS, and flags, below it.
static void put_return(struct writer* w) {
  const uint32_t which = random_below(5);
  if (w->kind->bits64) return put_return64(w, which);
  if (which == 4) put8(w, 0x9c);  // PUSHF
  if (which >= 2) put8(w, 0x0e);  // PUSH CS
  put8(w, 0x68);
  put_target(w, w->kind->wide ? 4 : 2, true);
  static const uint8_t opcodes[] = {0xc3, 0xc2, 0xcb, 0xca, 0xcf};
  put8(w, opcodes[which]);
  // Aligned: of PUSH of a segment register the emulator asks for a page that it does not store to.
  if (which == 1 || which == 3) put16(w, random_below(16) * (w->kind->wide ? 4 : 2));
}

// MOV of a target to a register, and JMP or CALL by it.
static void put_indirect(struct writer* w) {
  w->rex = 0;
  const uint32_t reg = random_register(w) & 3;
  if (w->kind->bits64) {
    put_target_address(w, reg);
  } else {
    put8(w, 0xb8 | reg);
    put_target(w, w->kind->wide ? 4 : 2, true);
  }
  put8(w, 0xff);
  put8(w, 0xc0 | (one_in(2) ? 2 : 4) << 3 | reg);
}

static void put_any_rule(struct writer* w) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < sizeof rules / sizeof *rules; ++i) total += rules[i].weight;
  for (;;) {
    uint32_t at = random_below(total), i = 0;
    while (at >= rules[i].weight) at -= rules[i++].weight;
    if ((rules[i].flags & kUserOnly) != 0 && w->kind->supervisor) continue;
    if ((rules[i].flags & (w->kind->bits64 ? kNot64 : kOnly64)) != 0) continue;
    return put_rule(w, &rules[i]);
  }
}

static void put_instruction(struct writer* w) {
  static void (*const others[])(struct writer*) = {
      put_arithmetic,     put_arithmetic,  put_arithmetic,      put_arithmetic,
      put_segment_load,   put_port_access, put_port_access,     put_string_port_access,
      put_far_call,       put_vector,      put_return,          put_indirect,
      put_patch,          put_far_jump,    put_descriptor_use,
#ifdef __x86_64__
      put_system_call,    put_base,        put_aligned_operand, put_simd,
      put_simd,
#endif
      put_extended_state,
  };
  const uint32_t count = sizeof others / sizeof *others, which = random_below(count * 3);
  if (which < count) {
    others[which](w);
  } else if (w->kind->controls && one_in(8)) {
    put_page_change(w);
  } else if (w->kind->supervisor && one_in(8)) {
    put_control(w);
  } else {
    put_any_rule(w);
  }
}

uint8_t* write_program(uint8_t* at, uint32_t offset, const struct program_kind* kind) {
  static struct writer w;
  w.at = at;
  w.kind = kind;
  w.count = w.jumps = 0;
  w.first = at;
  w.linear = kind->wide ? (uint32_t)first_alias(offset) : kTestLinear + offset;
  for (uint32_t count = 1 + random_below(kMostInstructions); w.count < count; ++w.count) {
    w.start[w.count] = w.at;
    put_instruction(&w);
  }
  w.start[w.count] = w.at;
  set_targets(&w, offset, at);
  return w.at;
}
