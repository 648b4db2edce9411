#include "processor_state.h"

#include "random.h"

uint32_t aligned_pointer(void) {
  uint32_t offset = random_below(0x100) << 4;
  if (offset > 0xe00 && offset < 0xf00) offset += 0x100;
  return kTestLinear + (random_below(kTestPages) << 12) + offset;
}

// MOV EAX and EDX, which name state components in their lower bits.
static void put_components(struct writer* w, uint32_t low) {
  put8(w, 0xb8);
  put32(w, low);
  put8(w, 0xba);
  put32(w, random32());
}

// XGETBV, or XSETBV of the components that are recorded: of register 0, and of one that is not
// there.
static void put_component_register(struct writer* w) {
  enum { kX87 = 1, kWithSse = 3 };
  const bool writes = one_in(2);
  put8(w, 0xb9);
  put32(w, one_in(4));
  if (writes) {
    put8(w, 0xb8);
    put32(w, one_in(3) ? kX87 : kWithSse);
    put16(w, 0xd231);  // XOR EDX, EDX
  }
  put8(w, 0x0f);
  put16(w, writes ? 0xd101 : 0xd001);
}

void put_extended_state(struct writer* w) {
  enum { kAlignment = 64, kHeader = 512, kHeaderWords = 6, kLegacy = 3 };
  enum { kMov = 0xc7, kGroup = 0xae, kXsave = 4 };
  if (!w->kind->wide || !choice.saves_extended_state) return;
  if (one_in(6)) return put_component_register(w);
  if (w->kind->controls) return;
  if (one_in(2)) put16(w, 0xe3db);                       // FNINIT
  if (one_in(2)) put16(w, one_in(2) ? 0xe8d9 : 0xeed9);  // FLD1, FLDZ
  const uint32_t linear = aligned_pointer() & ~(kAlignment - 1u);
  put_flat_segment(w);
  w->rex = 0;
  for (uint32_t i = 0; i < kHeaderWords; ++i) {
    put_absolute(w, false, kMov, 0, linear + kHeader + 4 * i);
    put32(w, i == 0 && one_in(8) ? random32() : 0);
  }
  w->rex = kRex | (one_in(2) ? kRexW : 0);
  put_components(w, random32() | kLegacy);
  put_absolute(w, true, kGroup, kXsave, linear);
  for (uint32_t i = 0; i < 2; ++i) {
    put_components(w, random32());
    put_absolute(w, true, kGroup, kXsave + random_below(3), linear);
  }
}
