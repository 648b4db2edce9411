#pragma once
// A program at level 3 that is refused something, by instructions and by blocks. What is held with
// it was found by comparing with the processor of the host, step by step (docs/silicon.md), and
// needs none here.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "replay/session/replayer.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat::test {

struct Deliveries final : Observer {
  Interest interest() const override { return {}; }
  void delivered(const DeliveredEvent& e, Position) override { list.push_back(e); }
  std::vector<DeliveredEvent> list;
};

/// Ring 3 with paging, everything flat; each vector's handler is a NOP.
class Ring3 : public testing::TestWithParam<ExecutionPath> {
 protected:
  static constexpr std::uint32_t kGdt = 0x1000, kIdt = 0x2000, kTss = 0x3000, kHandlers = 0x4000,
                                 kCode = 0x5000, kAbsent = 0x20000, kData = 0x21000,
                                 kStack = 0x22800, kKernelStack = 0x24f00;
  static constexpr std::uint32_t kPresentUserUsed = 0x67;
  static constexpr int kCode32 = 0x1b, kData32 = 0x23, kShortCode = 0x33;

  Ring3();

  CpuState& state() { return guest.recording.initial; }
  void descriptor(std::uint32_t selector, std::uint32_t low, std::uint32_t high);
  void gate(std::uint32_t vector, std::uint32_t type);
  /// Code that ends at 5fff.
  void short_code() { state().segment[kCs] = {kShortCode, 0, 0x5fff, 0x40fb, false}; }
  void code(std::initializer_list<int> bytes) { guest.put(kCode, bytes); }
  /// The entry of the page of `linear`, before and after run().
  static std::uint32_t entry_of(std::uint32_t linear) {
    return PagedGuest::kTable + 4 * (linear / kPageSize);
  }

  /// One instruction, and the handler's first where that is refused.
  void run(std::uint64_t instructions = 1);
  std::uint32_t word(std::uint32_t at) const;
  /// The instruction was refused where it is, with the stack as it was.
  void expect_refused(unsigned vector, std::uint32_t error);
  /// The same, where there is no error code, of the instruction at `eip`.
  void expect_undefined(std::uint32_t eip);
  void expect_delivered(unsigned vector, std::uint32_t eip);

  PagedGuest guest;
  Deliveries deliveries;
  CpuState cpu;
  MachineStats stats;
  std::vector<std::uint8_t> memory;
};

}  // namespace citcat::test
