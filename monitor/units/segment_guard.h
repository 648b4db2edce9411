#pragma once
// Ends the recording at an access that a processor refuses with #GP or #SS because of its segment
// (Intel SDM vol. 3, 5.3 to 5.5), which the emulator does not check.

#include <cstddef>
#include <cstdint>

#include "monitor/processor/observation.h"

namespace citcat::monitor {

class SegmentGuard {
 public:
  explicit SegmentGuard(Observation& seen) : cpu_(seen.cpu), recording_(seen.recording) {}

  /// Whether learn() is due before an instruction. Segments are not looked at in 64-bit mode.
  bool has_to_learn(const Insn& insn) const {
    return cpu_.segments.is_unknown() && insn.code != CodeSize::bits64;
  }
  /// One of 16 or 32 bits is about to run, after one that has loaded segment registers.
  void learn();
  /// Nothing that the instruction accesses can be refused.
  bool allows_all(const Insn& insn) const { return cpu_.segments.allow(insn.segments); }
  /// It has made an access.
  bool refuses(const Insn& insn, bool store, std::uint64_t linear, std::size_t size);

 private:
  ObservedProcessor& cpu_;
  Recording& recording_;
};

}  // namespace citcat::monitor
