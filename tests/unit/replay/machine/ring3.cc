#include "unit/replay/machine/ring3.h"

#include <cstring>

namespace citcat::test {

namespace {

constexpr int kFaultsGate = 0xee00, kSystemGate = 0x8e00;

}  // namespace

Ring3::Ring3() {
  CpuState& s = guest.recording.initial;
  for (std::uint32_t d = 0; d < 1024; ++d) {
    guest.put_word(PagedGuest::kDirectory + 4 * d, PagedGuest::kTable | kPresentUserUsed);
  }
  for (std::uint32_t p = 0; p < PagedGuest::kFrames; ++p) {
    guest.put_word(PagedGuest::kTable + 4 * p, p * kPageSize | kPresentUserUsed);
  }
  guest.put_word(PagedGuest::kTable + 4 * (kAbsent / kPageSize), 0);
  descriptor(8, 0xffff, 0xcf9b00);
  descriptor(0x10, 0xffff, 0xcf9300);
  descriptor(0x18, 0xffff, 0xcffb00);
  descriptor(0x20, 0xffff, 0xcff300);
  descriptor(0x30, 0x5fff, 0x40fb00);  // code that ends at 5fff
  for (std::uint32_t v = 0; v < 32; ++v) gate(v, v == 3 ? kFaultsGate : kSystemGate);
  guest.put_word(kTss + 4, kKernelStack);
  guest.put_word(kTss + 8, 0x10);
  for (std::uint32_t a = kHandlers; a < kHandlers + 0x200; ++a) guest.put(a, {0x90});
  s.segment.fill({kData32, 0, 0xffffffff, 0xc0f3, false});
  s.segment[kCs] = {kCode32, 0, 0xffffffff, 0xc0fb, false};
  s.gdtr = {kGdt, 0x3f};
  s.idtr = {kIdt, 0xff};
  s.tr = {0x28, kTss, 0x67, 0x8b, false};
  s.eip = kCode;
  s.gpr = {0, 0, 0, 0, kStack, 0x12345678, kData, kData};
  s.eflags = 0x202;
}

void Ring3::descriptor(std::uint32_t selector, std::uint32_t low, std::uint32_t high) {
  guest.put_word(kGdt + selector, low);
  guest.put_word(kGdt + selector + 4, high);
}

void Ring3::gate(std::uint32_t vector, std::uint32_t type) {
  guest.put_word(kIdt + 8 * vector, 0x80000 | (kHandlers + 16 * vector));
  guest.put_word(kIdt + 8 * vector + 4, type);
}

void Ring3::run(std::uint64_t instructions) {
  guest.recording.instructions = instructions;
  ReplayOptions options;
  options.path = GetParam();
  Replayer replayer(guest.recording, &deliveries, options);
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
  cpu = replayer.machine().save();
  stats = replayer.machine().stats();
  for (std::uint32_t page = 0; page < PagedGuest::kFrames; ++page) {
    const std::uint8_t* const host = replayer.machine().memory().host(PhysAddr{page * kPageSize});
    memory.insert(memory.end(), host, host + kPageSize);
  }
}

std::uint32_t Ring3::word(std::uint32_t at) const {
  std::uint32_t value = 0;
  std::memcpy(&value, &memory.at(at), 4);
  return value;
}

void Ring3::expect_refused(unsigned vector, std::uint32_t error) {
  expect_delivered(vector, state().eip);
  if (HasFatalFailure()) return;
  EXPECT_EQ(deliveries.list.back().error_code, error);
  EXPECT_EQ(cpu.gpr[kEsp], kKernelStack - 24);
  EXPECT_EQ(word(kKernelStack - 24), error);
}

void Ring3::expect_undefined(std::uint32_t eip) {
  expect_delivered(6, eip);
  if (HasFatalFailure()) return;
  EXPECT_EQ(cpu.gpr[kEsp], kKernelStack - 20);
}

void Ring3::expect_delivered(unsigned vector, std::uint32_t eip) {
  ASSERT_FALSE(deliveries.list.empty());
  const DeliveredEvent& last = deliveries.list.back();
  EXPECT_EQ(unsigned{last.vector}, vector);
  EXPECT_EQ(last.eip, eip);
  EXPECT_EQ(cpu.eip, kHandlers + 16 * vector + 1);
  EXPECT_EQ(word(kKernelStack - 20), eip);
  EXPECT_EQ(word(kKernelStack - 8), state().gpr[kEsp]);
}

}  // namespace citcat::test
