#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "replay/machine/machine.h"

namespace citcat {

/// Finds out that a run without stores is in an endless loop: its state recurs (Brent's algorithm).
class LoopDetector {
 public:
  void begin() {
    seen_.reset();
    steps_ = 0;
    next_ = 1;
    met_ = false;
  }
  /// Asked at every boundary; true when a whole round of the loop went by since a state was met
  /// again, with the same number of reads and no store since.
  bool went_round(const Machine& machine, std::size_t reads, std::uint64_t stores) {
    if (std::exchange(stores_, stores) != stores) begin();
    ++steps_;
    if (seen_ && reads == reads_ && same(machine)) {
      if (met_) return true;
      met_ = true;
    }
    if (met_ || steps_ < next_) return false;
    next_ *= 2;
    seen_ = machine.save();
    reads_ = reads;
    return false;
  }

 private:
  bool same(const Machine& machine) const {
    const Engine& engine = machine.engine();
    if (engine.eip() != seen_->eip) return false;
    for (int i = 0; i < 8; ++i) {
      if (engine.gpr(i) != seen_->gpr[static_cast<std::size_t>(i)]) return false;
    }
    return machine.save() == *seen_;
  }
  std::optional<CpuState> seen_;
  std::size_t reads_ = 0;
  std::uint64_t steps_ = 0, next_ = 1, stores_ = 0;
  bool met_ = false;
};

}  // namespace citcat
