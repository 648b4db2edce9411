#pragma once

#include <algorithm>
#include <cstdint>

#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Ends a replay where the run ended, as the evidence does when it is compared. Before all other
/// sinks.
class EndSink final : public Sink {
 public:
  /// A run that ended at `end` ended within a REP, and a replay up to `to` does not end by itself.
  static bool needed(Position end, std::uint64_t to) {
    return end.iteration != 0 && to > end.instruction;
  }
  /// The instruction before which a replay of such a run stops that is wanted up to `to`.
  static std::uint64_t stop(Position end, std::uint64_t to) {
    return std::min(to, end.instruction + (end.iteration == 0 ? 0 : 1));
  }

  explicit EndSink(Position end) : end_(end) {}
  void instruction(const ExecutedInstruction&, Position now) override {
    if (now >= end_) throw EvidenceEnd{};
  }

 private:
  Position end_;
};

}  // namespace citcat
