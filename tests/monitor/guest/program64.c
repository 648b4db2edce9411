#include "program64.h"

#include "processor_state.h"
#include "random.h"

// MOV RAX, address; INVLPG [RAX].
void put_invalidation(struct writer* w, word linear) {
  put8(w, kRex | kRexW);
  put8(w, 0xb8);
  put64(w, linear);
  put8(w, 0x0f);
  put16(w, 0x3801);
}

// SYSCALL, or SYSENTER with what SYSEXIT goes back to in EDX and ECX; the sign of EBX says to which
// mode.
void put_system_call(struct writer* w) {
  if (w->kind->supervisor || !w->kind->wide) return;
  if (one_in(2) || !(w->kind->bits64 || choice.enters_from_compatibility)) return put16(w, 0x050f);
  if (w->kind->bits64) {
    put_target_address(w, 2);
    put8(w, kRex | kRexW);
  } else {
    put8(w, 0xba);
    put_target(w, 4, true);
  }
  put16(w, 0xe189);  // MOV ECX, ESP
  put8(w, 0xbb);
  put32(w, random_below(1u << 31) | (w->kind->bits64 ? 1u << 31 : 0));
  put16(w, 0x340f);
}

// SWAPGS, or RDMSR or WRMSR of the bases of FS, GS and the other GS.
void put_base(struct writer* w) {
  enum { kFsBase = 0xc0000100u };
  if (!w->kind->supervisor) return;
  if (w->kind->bits64 && one_in(3)) {
    put16(w, 0x010f);
    return put8(w, 0xf8);
  }
  const word base = random_address();
  if (!w->kind->wide) put8(w, 0x66);
  put8(w, 0xb9);
  put32(w, kFsBase + random_below(3));
  if (one_in(2)) return put16(w, 0x320f);
  if (!w->kind->wide) put8(w, 0x66);
  put8(w, 0xb8);
  put32(w, (uint32_t)base);
  if (!w->kind->wide) put8(w, 0x66);
  put8(w, 0xba);
  put32(w, (uint32_t)(base >> 32));
  put16(w, 0x300f);
}

// CMPXCHG16B, or FXSAVE and mostly FXRSTOR of the same image: of one that has anything else, the
// emulator takes what a processor refuses.
void put_aligned_operand(struct writer* w) {
  if (!w->kind->wide) return;
  const uint32_t linear = aligned_pointer();
  w->rex = kRex | (one_in(2) ? kRexW : 0);
  if (w->kind->bits64 && one_in(2)) {
    w->rex = kRex | kRexW;
    if (one_in(3)) put8(w, 0xf0);
    return put_absolute(w, true, 0xc7, 1, linear);
  }
  if (!choice.saves_fpu) return;
  put_flat_segment(w);
  put_absolute(w, true, 0xae, 0, linear);
  if (!one_in(3)) put_absolute(w, true, 0xae, 1, linear);
}

// SSE and SSE2: every opcode once for each prefix that it is there for. Operands are in memory
// where they need not be aligned, for which the emulator does not look.
void put_simd(struct writer* w) {
  enum { kBare = 1, kDouble = 2, kScalar = 4, kScalarDouble = 8 };  // no prefix, 66, F3, F2
  enum { kAny = 15, kImmediate = 16, kUnaligned = 32 };
  static const uint8_t prefixes[] = {0, 0x66, 0xf3, 0xf2};
  static const struct {
    uint8_t first, last, flags;
  } opcodes[] = {
      {0x10, 0x11, kAny | kUnaligned},
      {0x14, 0x15, kBare | kDouble},
      {0x28, 0x28, kBare | kDouble},
      {0x2a, 0x2a, kScalar | kScalarDouble},
      {0x2c, 0x2d, kScalar | kScalarDouble},
      {0x2e, 0x2f, kBare | kDouble},
      {0x50, 0x50, kBare | kDouble},
      {0x51, 0x51, kAny},
      {0x54, 0x57, kBare | kDouble},
      {0x58, 0x5a, kAny},
      {0x5b, 0x5b, kBare | kDouble | kScalar},
      {0x5c, 0x5f, kAny},
      {0x60, 0x6d, kDouble},
      {0x6e, 0x6e, kDouble},
      {0x6f, 0x6f, kScalar | kUnaligned},
      {0x70, 0x70, kDouble | kScalar | kScalarDouble | kImmediate},
      {0x74, 0x76, kDouble},
      {0x7e, 0x7e, kDouble},
      {0x7f, 0x7f, kScalar | kUnaligned},
      {0xc2, 0xc2, kAny | kImmediate},
      {0xc4, 0xc5, kDouble | kImmediate},
      {0xc6, 0xc6, kBare | kDouble | kImmediate},
      {0xd1, 0xd5, kDouble},
      {0xd7, 0xdf, kDouble},
      {0xe0, 0xe5, kDouble},
      {0xe6, 0xe6, kDouble | kScalar | kScalarDouble},
      {0xe8, 0xef, kDouble},
      {0xf1, 0xf6, kDouble},
      {0xf8, 0xfe, kDouble},
  };
  const uint32_t row = random_below(sizeof opcodes / sizeof *opcodes);
  const uint32_t flags = opcodes[row].flags;
  uint32_t prefix = random_below(4);
  while ((flags >> prefix & 1) == 0) prefix = (prefix + 1) % 4;
  if (prefixes[prefix] != 0) put8(w, prefixes[prefix]);
  static const struct rule plain = {0, 0, kModrm, 0, kAll, 0};
  w->operand32 = w->address32 = w->kind->wide;
  w->rex = 0;
  if (w->kind->bits64) put_rex(w, &plain);
  put8(w, 0x0f);
  uint32_t opcode = opcodes[row].first + random_below(opcodes[row].last - opcodes[row].first + 1u);
  // A denormal that is the minimum or maximum stays what it is in the emulator, DAZ or not.
  const bool minimum = opcode == 0x5d || opcode == 0x5f;
  if (minimum && choice.saves_fpu) --opcode;
  put8(w, opcode);
  if ((flags & kUnaligned) != 0) {
    put_modrm(w, kAll, true);
  } else {
    put8(w, 0xc0 | random_register_behind(w, kRexR) << 3 | random_register(w));
  }
  if ((flags & kImmediate) != 0) put8(w, opcode == 0xc2 ? random_below(8) : random32());
}
