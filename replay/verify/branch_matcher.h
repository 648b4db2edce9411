#pragma once
// Compares the addresses of instructions with what the hardware reports: pins that show each
// instruction, or branch trace messages that show where branches went.

#include <cstdint>
#include <deque>
#include <optional>

#include "replay/machine/observer.h"
#include "replay/verify/comparison_result.h"
#include "replay/verify/mismatch.h"

namespace citcat {

class BranchMatcher {
 public:
  void expect(const BusTransaction& start) { starts_.push_back(start); }
  std::size_t waiting() const { return starts_.size(); }
  bool empty() const { return starts_.empty(); }
  /// The start that is to agree next, where there is one.
  const BusTransaction& due() const { return starts_.front(); }

  /// A byte of an instruction that the pins report by itself, and the bytes from it to the end.
  struct Reported {
    PhysAddr address;  ///< as captured
    std::span<const std::uint8_t> bytes;
    bool prefix = false;
  };
  /// For pins that report each instruction: compares the start that is due; there must be one.
  std::optional<Mismatch> observe(const Reported& byte, ComparisonResult& result);

  /// For branch trace messages: this instruction begins at `now`. A message comes some time around
  /// its branch: each must name an instruction that was not reached from the one before it in
  /// memory, in the order of the branches. Branches without a message were taken while tracing was
  /// off.
  std::optional<Mismatch> observe(const ExecutedInstruction& e, Position now,
                                  ComparisonResult& result);
  /// At the end of the replay; for messages only.
  std::optional<Mismatch> left_before(Position end, ComparisonResult& result);
  /// The same of pins that report each instruction: they show where the processor went on at `end`,
  /// and that is not at `next`, as captured.
  std::optional<Mismatch> goes_on_elsewhere(Position end, PhysAddr next) const;

 private:
  struct Target {
    LinearAddr linear;
    std::uint32_t eip = 0;
  };
  void note(LinearAddr linear, std::uint32_t eip);
  void match(ComparisonResult& result);

  std::deque<BusTransaction> starts_;
  // Targets that the replay reached other than from the instruction before them in memory.
  std::deque<Target> taken_;  ///< since the last one that a message reported
  LinearAddr next_linear_;
  bool after_branch_ = true;
  std::uint8_t last_opcode_ = 0;              ///< of the start that agreed last
  std::optional<std::uint64_t> waits_since_;  ///< instruction at which starts_.front() was missed
};

}  // namespace citcat
