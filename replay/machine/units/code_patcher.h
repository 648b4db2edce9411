#pragma once
// Other bytes in memory while the engine executes one instruction: a documented encoding in place
// of the original one, or the bytes beyond a segment's end taken from its beginning.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

/// An instruction that wants it is executed alone: patch() between runs of the engine, restore() as
/// soon as that stops or reports what follows. Memory is as it was before anything else looks at
/// it, but for what the instruction itself stored.
class CodePatcher {
 public:
  /// All must outlive the object.
  CodePatcher(CpuContext& cpu, InFlight& flight) : cpu_(cpu), flight_(flight) {}

  /// Nothing is wanted for the instruction about to be prepared.
  void begin() { beyond_.clear(); }
  bool is_active() const { return active_; }
  /// The engine may have translated what was patched: forget_code() is due.
  bool has_code_to_forget() const { return !patched_code_.empty(); }

  /// The instruction in flight has an encoding that the engine does not know, or not so.
  bool needs_canonical() const;
  /// The engine reads or writes `size` bytes beyond the segment at `base` where the processor goes
  /// on at its beginning.
  void lend_beyond(LinearAddr base, std::uint32_t size);
  /// Throws ReplayStopped where the instruction, about to be patched, reads its own bytes.
  void refuse_reading_own_code(PhysAddr a, std::uint32_t size);
  /// Puts everything in place; the engine then executes one instruction.
  void patch();
  /// Puts everything back.
  void restore();
  /// Has the engine forget what it translated of patched bytes.
  void forget_code();

 private:
  /// A byte of memory that holds something else while the engine executes one instruction.
  struct Patch {
    PhysAddr at;
    std::optional<PhysAddr> home;  ///< what the engine leaves at `at` belongs here
    std::uint8_t original = 0, patched = 0;
  };

  void put(PhysAddr at, std::uint8_t value, std::optional<PhysAddr> home);

  CpuContext& cpu_;
  InFlight& flight_;

  bool active_ = false;
  std::vector<Patch> patches_;
  std::vector<PhysAddr> patched_code_;
  std::vector<LinearAddr> beyond_;  ///< 64 KiB above the byte that the processor means
};

}  // namespace citcat
