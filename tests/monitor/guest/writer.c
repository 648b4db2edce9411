#include "writer.h"

#include "random.h"

void put8(struct writer* w, uint32_t value) { *w->at++ = (uint8_t)value; }

void put16(struct writer* w, uint32_t value) {
  put8(w, value);
  put8(w, value >> 8);
}

void put32(struct writer* w, uint32_t value) {
  put16(w, value);
  put16(w, value >> 16);
}

void put64(struct writer* w, uint64_t value) {
  put32(w, (uint32_t)value);
  put32(w, (uint32_t)(value >> 32));
}

void put_operand(struct writer* w, uint32_t value) {
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

// What is relative to RIP leads to a random pointer of the half that the program is in. RBP and RSP
// stay canonical, and are bases alone: for what lies elsewhere a processor has #SS, the emulator
// #GP.
static void put_address64(struct writer* w, uint32_t reg) {
  enum { kStack = 4, kFrame = 5, kNoIndex = 4 };
  const uint32_t mod = random_below(3);
  uint32_t rm = random_below(8);
  const bool names_low = (w->rex & kRexB) == 0;
  if (w->far_operand && names_low && mod != 0 && (rm == kStack || rm == kFrame)) rm = 3;
  put8(w, mod << 6 | reg << 3 | rm);
  if (mod == 0 && rm == kFrame) {
    const uint32_t here = w->linear + (uint32_t)(w->at - w->first);
    return put32(w, random_pointer() - here);
  }
  bool long_offset = false;
  if (rm == 4) {
    uint32_t base = random_below(8), index = one_in(2) ? kNoIndex : random_below(8);
    if (names_low && (base == kStack || (base == kFrame && mod != 0))) {
      if ((w->rex & kRexX) != 0 || w->far_operand) base = 3;
      index = kNoIndex;
    }
    put8(w, random_below(4) << 6 | index << 3 | base);
    long_offset = mod == 0 && base == 5;
  }
  if (long_offset) put32(w, random_pointer());
  if (mod == 1) put8(w, random32());
  if (mod == 2) put32(w, random_below(0x2000) - 0x1000);
}

void put_memory(struct writer* w, uint32_t reg) {
  if (w->kind->bits64) {
    put_address64(w, reg);
  } else if (w->address32) {
    put_address32(w, reg);
  } else {
    put_address16(w, reg);
  }
}

// A supervisor's stack pointer is left alone. In 64-bit mode a bit of REX tells RSP and RBP, which
// are not written as a whole, from others.
bool may_be_named(const struct writer* w, uint32_t reg, uint32_t rex_bit) {
  if (w->kind->bits64 && (w->rex & rex_bit) != 0) return true;
  return (reg != 4 || !(w->kind->supervisor || w->whole_register)) &&
         (reg != 5 || !w->whole_register);
}

uint32_t random_register_behind(const struct writer* w, uint32_t rex_bit) {
  const uint32_t reg = random_below(8);
  return may_be_named(w, reg, rex_bit) ? reg : 3;
}

uint32_t random_register(const struct writer* w) { return random_register_behind(w, kRexB); }

static uint32_t random_digit(const struct writer* w, uint32_t digits) {
  if (digits == kAll) return random_register_behind(w, kRexR);
  uint32_t digit = random_below(8);
  while ((digits >> digit & 1) == 0) digit = (digit + 1) % 8;
  return digit;
}

void put_modrm(struct writer* w, uint32_t digits, bool memory) {
  const uint32_t reg = random_digit(w, digits);
  if (memory || random_below(5) < 3) {
    put_memory(w, reg);
  } else {
    put8(w, 0xc0 | reg << 3 | random_register(w));
  }
}

void put_target(struct writer* w, uint32_t size, bool absolute) {
  w->jump[w->jumps++] = (struct jump){w->at, (uint8_t)size, absolute, w->count};
  for (uint32_t i = 0; i < size; ++i) put8(w, 0);
}

void set_targets(struct writer* w, uint32_t offset, const uint8_t* first) {
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

enum form form_of(const struct rule* rule, uint8_t opcode) {
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

// MOV of an immediate to a register.
static bool opcode_takes_all(const struct writer* w, uint8_t opcode) {
  return (w->rex & kRexW) != 0 && opcode >= 0xb8 && opcode <= 0xbf;
}

void put_rest(struct writer* w, enum form form, uint8_t opcode, uint32_t digits, bool memory) {
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
      if (opcode_takes_all(w, opcode)) return put64(w, random_address());
      return put_operand(w, one_in(2) ? random_pointer() : random32());
    case kShort:
      return put_target(w, 1, false);
    case kNear:
      return put_target(w, w->operand32 ? 4 : 2, false);
    case kOffset:
      if (w->kind->bits64 && w->address32) return put64(w, random_address());
      return w->address32 || w->kind->bits64 ? put32(w, random_pointer()) : put16(w, near_offset());
  }
}

// Any REX, or none. PUSH and POP move whole registers without it.
void put_rex(struct writer* w, const struct rule* rule) {
  w->rex = 0;
  if (!w->kind->bits64) return;
  if (one_in(2)) w->rex = kRex | random_below(16);
  // The emulator takes R for a part of a segment register's number.
  if (rule->first == 0x8c && (rule->flags & kSecond) == 0) w->rex &= ~(uint32_t)kRexR;
  // It clears the upper half of what BSF and BSR leave alone.
  if (rule->first == 0xbc && (rule->flags & kSecond) != 0) w->rex |= kRex | kRexW;
  if (w->rex != 0 && (rule->flags & kWide) != 0 && !w->operand32) w->rex |= kRexW;
  if (w->rex != 0) put8(w, w->rex);
  if ((w->rex & kRexW) != 0) w->operand32 = true;
  w->whole_register = (w->rex & kRexW) != 0 || (rule->flags & kBare) != 0;
}

void put_prefixes(struct writer* w, const struct rule* rule, bool locked) {
  static const uint8_t segments[] = {0x26, 0x36, 0x3e, 0x64, 0x65};
  w->operand32 = w->kind->wide;
  w->address32 = w->kind->wide;
  // Near branches of 64-bit mode are not narrowed by all processors.
  // And MOVSXD to 16 bits reads as many by Intel's manual, 32 by AMD's; the emulator does the
  // former.
  const bool bare = (rule->flags & kBare) != 0 || (w->kind->bits64 && rule->first == 0x63) ||
                    (w->kind->bits64 && (rule->form == kShort || rule->form == kNear));
  const bool other = (rule->flags & kWide) != 0 ? !w->kind->wide : one_in(5) && !bare;
  if (other) {
    put8(w, 0x66);
    w->operand32 = !w->operand32;
  }
  // Offsets of 32 bits reach beyond the limit of a virtual-8086 segment.
  if (!w->kind->virtual_8086 && one_in(10)) {
    put8(w, 0x67);
    w->address32 = !w->address32;
  }
  if (one_in(10)) put8(w, w->kind->bits64 ? 0x64 + random_below(2) : segments[random_below(5)]);
  if ((rule->flags & kRepeats) != 0 && one_in(2)) put8(w, 0xf2 + random_below(2));
  if (locked) put8(w, 0xf0);
  put_rex(w, rule);
}

void put_push(struct writer* w, uint32_t value) {
  put8(w, 0x68);
  w->operand32 = w->kind->wide;
  put_operand(w, value);
}

void put_selector(struct writer* w, uint32_t selector) {
  if (w->kind->wide) put8(w, 0x66);
  put8(w, 0xb8);
  put16(w, selector);
}

void put_flat_segment(struct writer* w) {
  if (w->kind->bits64) return;
  put_selector(w, kUserData);
  put8(w, 0x8e);
  put8(w, 0xc0);
}

void put_absolute(struct writer* w, bool second, uint32_t opcode, uint32_t digit, uint32_t linear) {
  const bool bits64 = w->kind->bits64;
  if (!bits64) put8(w, 0x26);
  if (!w->kind->wide) put8(w, 0x67);
  if (bits64 && w->rex != 0) put8(w, w->rex);
  if (second) put8(w, 0x0f);
  put8(w, opcode);
  put8(w, digit << 3 | (bits64 ? 4 : 5));
  if (bits64) put8(w, 0x25);  // no base, no index
  put32(w, linear);
}

void put_target_address(struct writer* w, uint32_t reg) {
  put8(w, kRex | kRexW);
  put8(w, 0x8d);
  put8(w, reg << 3 | 5);
  put_target(w, 4, false);
}
