#include "program.h"

#include <stdbool.h>

#include "machine.h"
#include "random.h"
#include "rules.h"

enum { kMostJumps = kMostInstructions };

// A distance, or an offset in the code segment, that is known when all instructions are written.
struct jump {
  uint8_t* field;
  uint8_t size;
  bool absolute;
  uint32_t instruction;  // which it belongs to
};

struct writer {
  uint8_t* at;
  const struct program_kind* kind;
  bool operand32, address32;
  uint8_t* start[kMostInstructions + 1];
  uint32_t count;
  struct jump jump[kMostJumps];
  uint32_t jumps;
  uint32_t linear;  // of a program that is not in virtual-8086 mode: the one at `first`
  const uint8_t* first;
};

static void put8(struct writer* w, uint32_t value) { *w->at++ = (uint8_t)value; }
static void put16(struct writer* w, uint32_t value) {
  put8(w, value);
  put8(w, value >> 8);
}
static void put32(struct writer* w, uint32_t value) {
  put16(w, value);
  put16(w, value >> 16);
}
static void put_operand(struct writer* w, uint32_t value) {
  if (w->operand32) {
    put32(w, value);
  } else {
    put16(w, value);
  }
}

// An offset that makes no word reach across FFFF: the emulator checks no limits.
static uint32_t near_offset(void) { return random_below(0xf000); }

static void put_address16(struct writer* w, uint32_t reg) {
  const uint32_t mod = random_below(3), rm = random_below(8);
  put8(w, mod << 6 | reg << 3 | rm);
  if (mod == 1) put8(w, random32());
  if (mod == 2 || (mod == 0 && rm == 6)) put16(w, near_offset());
}

static void put_address32(struct writer* w, uint32_t reg) {
  const uint32_t mod = random_below(3), rm = random_below(8);
  put8(w, mod << 6 | reg << 3 | rm);
  bool long_offset = mod == 0 && rm == 5;
  if (rm == 4) {
    const uint32_t scaled = random32();
    put8(w, scaled);
    long_offset |= mod == 0 && (scaled & 7) == 5;
  }
  if (long_offset) put32(w, random_pointer());
  if (mod == 1) put8(w, random32());
  if (mod == 2) put32(w, random_below(0x2000) - 0x1000);
}

static void put_memory(struct writer* w, uint32_t reg) {
  if (w->address32) {
    put_address32(w, reg);
  } else {
    put_address16(w, reg);
  }
}

// A supervisor's stack pointer is left alone.
static uint32_t random_register(const struct writer* w) {
  const uint32_t reg = random_below(8);
  return reg == 4 && w->kind->supervisor ? 3 : reg;
}

static uint32_t random_digit(const struct writer* w, uint32_t digits) {
  if (digits == kAll) return random_register(w);
  uint32_t digit = random_below(8);
  while ((digits >> digit & 1) == 0) digit = (digit + 1) % 8;
  return digit;
}

static void put_modrm(struct writer* w, uint32_t digits, bool memory) {
  const uint32_t reg = random_digit(w, digits);
  if (memory || random_below(5) < 3) {
    put_memory(w, reg);
  } else {
    put8(w, 0xc0 | reg << 3 | random_register(w));
  }
}

// A field of `size` bytes for a place to go to.
static void put_target(struct writer* w, uint32_t size, bool absolute) {
  w->jump[w->jumps++] = (struct jump){w->at, (uint8_t)size, absolute, w->count};
  for (uint32_t i = 0; i < size; ++i) put8(w, 0);
}

// Gives each jump an instruction to go to. It is a later one where nothing would end a loop.
static void set_targets(struct writer* w, uint32_t offset, const uint8_t* first) {
  for (uint32_t i = 0; i < w->jumps; ++i) {
    const struct jump* const jump = &w->jump[i];
    const bool forward = w->kind->supervisor || w->kind->ports_open || !one_in(6);
    const uint32_t earliest = forward ? jump->instruction + 1 : 0;
    const uint8_t* const target = w->start[earliest + random_below(w->count + 1 - earliest)];
    const uint32_t value = jump->absolute ? offset + (uint32_t)(target - first)
                                          : (uint32_t)(target - (jump->field + jump->size));
    for (uint32_t k = 0; k < jump->size; ++k) jump->field[k] = (uint8_t)(value >> 8 * k);
  }
}

static enum form form_of(const struct rule* rule, uint8_t opcode) {
  if ((rule->flags & kSecond) != 0) return rule->form;
  switch (opcode) {
    case 0x69:
    case 0x81:
    case 0xc7:
      return kModrmOperand;
    case 0x6b:
      return kModrmByte;
    case 0xf7:
      return rule->form == kModrmByte ? kModrmOperand : rule->form;
    default:
      return rule->form;
  }
}

static void put_rest(struct writer* w, enum form form, uint32_t digits, bool memory) {
  switch (form) {
    case kNone:
      return;
    case kModrm:
    case kMemory:
      return put_modrm(w, digits, memory || form == kMemory);
    case kModrmByte:
      put_modrm(w, digits, memory);
      return put8(w, random32());
    case kModrmOperand:
      put_modrm(w, digits, memory);
      return put_operand(w, random32());
    case kRegister: {
      const uint32_t reg = random_digit(w, digits);
      return put8(w, 0xc0 | reg << 3 | random_register(w));
    }
    case kByte:
      return put8(w, random32());
    case kCount:
      return put8(w, 1 + random_below(7));
    case kModrmCount:
      put_modrm(w, digits, memory);
      return put8(w, 1 + random_below(7));
    case kOperand:
      return put_operand(w, one_in(2) ? random_pointer() : random32());
    case kShort:
      return put_target(w, 1, false);
    case kNear:
      return put_target(w, w->operand32 ? 4 : 2, false);
    case kOffset:
      return w->address32 ? put32(w, random_pointer()) : put16(w, near_offset());
  }
}

static void put_prefixes(struct writer* w, const struct rule* rule, bool locked) {
  static const uint8_t segments[] = {0x26, 0x36, 0x3e, 0x64, 0x65};
  w->operand32 = w->kind->wide;
  w->address32 = w->kind->wide;
  const bool other =
      (rule->flags & kWide) != 0 ? !w->kind->wide : one_in(5) && (rule->flags & kBare) == 0;
  if (other) {
    put8(w, 0x66);
    w->operand32 = !w->operand32;
  }
  // Offsets of 32 bits reach beyond the limit of a virtual-8086 segment.
  if (!w->kind->virtual_8086 && one_in(10)) {
    put8(w, 0x67);
    w->address32 = !w->address32;
  }
  if (one_in(10)) put8(w, segments[random_below(5)]);
  if ((rule->flags & kRepeats) != 0 && one_in(2)) put8(w, 0xf2 + random_below(2));
  if (locked) put8(w, 0xf0);
}

// CMP of two registers, which makes all flags known that a jump may ask for.
static void put_compare(struct writer* w) {
  put8(w, 0x38);
  put8(w, 0xc0 | random_below(64));
}

// ADD, OR, ADC, SBB, AND, SUB, XOR and CMP in their six forms, and the decimal adjustments.
static void put_arithmetic(struct writer* w) {
  static const struct rule plain = {0, 0, kModrm, 0, kAll, 0};
  static const uint8_t decimal[] = {0x27, 0x2f, 0x37, 0x3f};
  const uint32_t form = random_below(7), operation = random_below(8);
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
  const bool names_stack = (opcode & 7) == 4 && (rule->flags & kNoStackReg) != 0;
  if (names_stack && w->kind->supervisor) --opcode;
  if ((rule->flags & kSecond) != 0) put8(w, 0x0f);
  put8(w, opcode);
  put_rest(w, form_of(rule, opcode), rule->digits, locked);
  if ((rule->flags & kVague) != 0) put_compare(w);
}

// PUSH of an immediate as wide as code.
static void put_push(struct writer* w, uint32_t value) {
  put8(w, 0x68);
  w->operand32 = w->kind->wide;
  put_operand(w, value);
}

// MOV AX, selector.
static void put_selector(struct writer* w, uint32_t selector) {
  if (w->kind->wide) put8(w, 0x66);
  put8(w, 0xb8);
  put16(w, selector);
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
  if (one_in(2)) {
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
  put_selector(w, loads ? loaded[random_below(6)] : random_below(kSelectors + 8));
  put8(w, 0x0f);
  if (!loads && one_in(2)) {
    put8(w, 0x02 + random_below(2));
    return put8(w, 0xc0 | (random_register(w) & 3) << 3);
  }
  put8(w, 0x00);
  put8(w, 0xc0 | (loads ? kLldt + random_below(2) : kVerr + random_below(2)) << 3);
}

// JMP or CALL to a code segment like this one, of either table. CALL where the stack does not
// fault: the emulator may have stored CS by then.
static void put_far_jump(struct writer* w) {
  static const uint16_t selectors[2][2][2] = {
      {{kUserCode16, kLocalCode16}, {kUserCode, kLocalCode}},
      {{kKernelCode16, kLocalKernelCode16}, {kKernelCode, kLocalKernelCode}}};
  if (w->kind->virtual_8086) return;
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
  put8(w, !w->kind->supervisor && one_in(4) ? 0xea : 0x9a);  // what a gate names returns
  if (w->kind->wide) {
    put32(w, random32());
  } else {
    put16(w, random32());
  }
  put16(w, selector);
}

// MMX and SSE without arithmetic, and without operands in memory that must be aligned: the emulator
// does not look.
static void put_vector(struct writer* w) {
  static const uint8_t opcodes[] = {0x6e, 0x7e, 0x6f, 0x7f, 0xfc, 0xdb,
                                    0xef, 0x10, 0x11, 0x16, 0x17};
  static const struct rule plain = {0, 0, kModrm, 0, kAll, 0};
  put_prefixes(w, &plain, false);
  // 66 makes other instructions of these.
  if (w->operand32 != w->kind->wide) put8(w, 0x90);
  put8(w, 0x0f);
  const uint8_t opcode = opcodes[random_below(sizeof opcodes)];
  put8(w, opcode);
  put_modrm(w, kAll, opcode == 0x17);
}

// Control registers as they are, with a bit or two changed that no program depends on.
static void put_control(struct writer* w) {
  enum { kEax = 0 };
  const uint32_t which = w->kind->controls ? random_below(6) : 5;
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

// ES becomes a segment with base 0: what follows may name any address by put_absolute().
static void put_flat_segment(struct writer* w) {
  put_selector(w, kUserData);
  put8(w, 0x8e);
  put8(w, 0xc0);
}

// An instruction with an operand at this linear address, its immediate excepted.
static void put_absolute(struct writer* w, bool second, uint32_t opcode, uint32_t digit,
                         uint32_t linear) {
  put8(w, 0x26);
  if (!w->kind->wide) put8(w, 0x67);
  if (second) put8(w, 0x0f);
  put8(w, opcode);
  put8(w, digit << 3 | 5);
  put32(w, linear);
}

// A page becomes another one. Without INVLPG where nothing can be held of it: if it was not there.
static void put_page_change(struct writer* w) {
  enum { kFirst = 20, kMov = 0xc7, kOr = 0x83 };  // behind all code
  const uint32_t linear = kTestLinear + ((kFirst + random_below(kTestPages - kFirst)) << 12);
  const uint32_t entry = page_entry_address(linear);
  put_flat_segment(w);
  if (one_in(3)) {
    if (!w->kind->wide) put8(w, 0x66);
    put_absolute(w, false, kOr, 1, entry);
    return put8(w, kPresent);
  }
  if (!w->kind->wide) put8(w, 0x66);
  put_absolute(w, false, kMov, 0, entry);
  put32(w, random_page(linear));
  put_absolute(w, true, 1, 7, linear);
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
  const bool itself = w->kind->controls && one_in(2), word = one_in(2);
  const uint32_t which = word ? 0 : random_below(2);
  const uint8_t code[] = {(uint8_t)(0xb0 | random_below(8)), (uint8_t)random32()};
  if (itself) put_cr0_change(w, kAnd, ~(uint32_t)kWriteProtect);
  put_flat_segment(w);
  if (word && w->kind->wide) put8(w, 0x66);
  put_absolute(w, false, word ? kMovWord : kMovByte, 0, 0);
  uint8_t* const address = w->at - 4;
  put8(w, code[which]);
  if (word) put8(w, code[1]);
  if (!itself) put16(w, 0xa20f);
  const uint32_t target = w->linear + (uint32_t)(w->at - w->first) + which;
  const uint32_t place = itself ? target : kAliasLinear + target - (w->linear & ~0xfffu);
  for (uint32_t k = 0; k < 4; ++k) address[k] = (uint8_t)(place >> 8 * k);
  put8(w, 0xb0 | random_below(8));
  put8(w, random32());
  if (itself) put_cr0_change(w, kOr, kWriteProtect);
}

// PUSH of a target, and a way to go there: RET, or RET far and IRET with CS, and flags, below it.
static void put_return(struct writer* w) {
  const uint32_t which = random_below(5);
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
  const uint32_t reg = random_register(w) & 3;
  put8(w, 0xb8 | reg);
  put_target(w, w->kind->wide ? 4 : 2, true);
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
    return put_rule(w, &rules[i]);
  }
}

static void put_instruction(struct writer* w) {
  static void (*const others[])(struct writer*) = {
      put_arithmetic,   put_arithmetic,  put_arithmetic,     put_arithmetic,
      put_segment_load, put_port_access, put_port_access,    put_string_port_access,
      put_far_call,     put_vector,      put_return,         put_indirect,
      put_patch,        put_far_jump,    put_descriptor_use,
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
  w.linear = kind->wide ? offset : kTestLinear + offset;
  for (uint32_t count = 1 + random_below(kMostInstructions); w.count < count; ++w.count) {
    w.start[w.count] = w.at;
    put_instruction(&w);
  }
  w.start[w.count] = w.at;
  set_targets(&w, offset, at);
  return w.at;
}
