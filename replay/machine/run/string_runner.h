#pragma once
// Iterations of repeated strings, many at a time.
//
// The engine makes one iteration of a REP after another, and each is reported. If nothing among the
// following iterations needs attention (same pages, no limit, no breakpoint, no event), they are
// executed here. If a comparison expects something, it judges many iterations at once, or one. The
// engine always executes the last iteration, which leaves the flags and may be interrupted, or
// fault.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/segment_rights.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class DebugUnit;
class Retirement;

/// Inside on_instruction, with an iteration prepared. repeat() moves registers and position after
/// the iterations it made; the engine goes on from there.
class StringRunner {
 public:
  /// All must outlive the object.
  StringRunner(CpuContext& cpu, InFlight& flight, Expectation& expectation, SegmentRights& rights,
               DebugUnit& debug, Retirement& retirement)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        rights_(rights),
        debug_(debug),
        retirement_(retirement) {}

  /// Makes iterations, from the one that is prepared on, where any can be made here: the engine
  /// goes on with the registers that they leave. False when there are none.
  bool repeat();

 private:
  struct StringRun {
    LinearAddr linear;
    PhysAddr at;
    std::uint8_t* host = nullptr;
    std::uint32_t bytes = 0;
  };

  /// A general register with the bits that addresses have in the mode.
  std::uint64_t pointer(int number) const;
  void set_pointer(int number, std::uint64_t value);
  std::optional<StringRun> string_run(const MemoryOperand& operand);
  bool may_repeat_quickly() const;
  std::uint32_t count_quick_iterations();
  std::uint32_t count_equal_or_different(std::uint32_t count) const;
  std::uint32_t count_untold(std::uint32_t left, bool prepared);
  std::uint32_t agree_on_iterations(std::uint32_t most);
  std::span<const std::uint8_t> speculate_stores(std::uint32_t& count);
  void tell_iterations(std::uint32_t count);
  void store_string(std::uint32_t count);
  void pass_iterations(std::uint32_t count);
  void tell_iteration_reads();
  void tell_iteration();

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  SegmentRights& rights_;
  DebugUnit& debug_;
  Retirement& retirement_;

  std::array<StringRun, 2> string_runs_{};              ///< what they access, by operand
  std::array<std::uint8_t, kPageSize> string_pattern_;  ///< that STOS is going to store
};

}  // namespace citcat
