#pragma once
// The base of the task segment; outside 64-bit mode the emulator prints only half of it.

#include <cstdint>
#include <span>

#include "monitor/processor/observation.h"

namespace citcat::monitor {

class TaskRegister {
 public:
  explicit TaskRegister(Observation& seen) : seen_(seen) {}

  /// A state has been seen.
  void note(const LoggedState& state) {
    if (state.code64) base_ = state.tr.base;
  }
  /// The whole of it.
  std::uint64_t base() const { return base_; }
  /// LLDT and LTR have read a dword of a descriptor, which has 16 bytes in long mode.
  void note_read(InsnKind kind, std::uint64_t linear, std::span<const std::uint8_t> dword);
  /// LTR has ended.
  void finish();

 private:
  Observation& seen_;
  std::uint64_t base_ = 0;
  std::uint32_t high_ = 0;  ///< that LTR has read
};

}  // namespace citcat::monitor
