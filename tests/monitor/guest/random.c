#include "random.h"

#include "machine.h"

static uint32_t state;

// Marsaglia, "Xorshift RNGs" (2003), triple 13, 17, 5.
uint32_t random32(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

void seed_random(uint32_t seed) {
  state = seed * 0x9e3779b1u | 1;
  for (int i = 0; i < 8; ++i) random32();
}

uint32_t random_below(uint32_t end) { return (uint32_t)((uint64_t)random32() * end >> 32); }

bool one_in(uint32_t times) { return random_below(times) == 0; }

uint32_t random_pointer(void) {
  switch (random_below(12)) {
    case 0:  // nothing is there; and far enough from 0 for what lies in front of it
      return 0x2000 + random_below(0x100);
    case 1:
      return random32() & 0x7fffffff;
    case 2:
      return kLargeLinear + random_below(kFrameCount << 12);
    case 3:
    case 4:  // near the end of a page
      return kTestLinear + (random_below(kTestPages) << 12) - 8 + random_below(16);
    case 5:
      return kLowLinear + random_below(kLowPages << 12);
    default:
      return kTestLinear + random_below(kTestPages << 12);
  }
}

word random_address(void) {
#ifdef __x86_64__
  const word closed = one_in(4) ? kClosedAlias : 0;
  if (one_in(8)) return kHugeLinear + kFrames + random_below(kFrameCount << 12);
  return random_pointer() + (one_in(3) ? kHighAlias : closed);
#else
  return random_pointer();
#endif
}

uint16_t random_selector(void) {
  static const uint16_t usual[] = {kUserData, kUserData16, kOddData, kLocalData, kLocalData16};
  static const uint16_t refused[] = {kAbsent,
                                     kGate,
                                     kTask,
                                     kSelectors,
                                     0xfff8,
                                     kLocalAbsent,
                                     kLocalGate,
                                     kLocalSelectors | 7,
                                     kLocalKernelCode | 3};
  if (one_in(6)) return refused[random_below(sizeof refused / sizeof *refused)];
  return usual[random_below(sizeof usual / sizeof *usual)];
}

uint32_t random_frame(void) { return kFrames + (random_below(kFrameCount) << 12); }

// Mostly open to all.
uint64_t random_entry(void) {
  static const uint32_t marks[] = {0, kAccessed, kAccessed | kDirty, kGlobal};
  uint64_t entry = kPresent | kWritable | kUser | marks[random_below(4)];
  if (one_in(6)) entry &= ~(uint64_t)kPresent;
  if (one_in(6)) entry &= ~(uint64_t)kWritable;
  if (one_in(8)) entry &= ~(uint64_t)kUser;
  if (entry_marks() != 0 && one_in(4)) entry |= entry_marks();
  return entry;
}

static bool may_be_read(uint64_t entry) { return (entry & kPresent) != 0 && (entry & kUser) != 0; }
static bool is_read_only(uint64_t entry) { return (entry & (kPresent | kWritable)) == kPresent; }

uint64_t random_page(word linear) {
  uint64_t entry = random_frame() | random_entry();
  if (is_read_only(entry) && !may_be_read(page_entry(linear + 0x1000))) entry |= kWritable;
  if (!may_be_read(entry) && is_read_only(page_entry(linear - 0x1000))) entry |= kPresent | kUser;
  return entry;
}
