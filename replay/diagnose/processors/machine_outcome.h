#pragma once
// Whether the processors of a machine agree with their shared bus, and with each other.

#include <cstddef>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

struct MachineOutcome {
  std::vector<ReplayReport> replays;  ///< of each processor alone
  CrossCheckResult bus;
  /// Processors whose replay diverges from the evidence.
  std::size_t diverged() const;
  bool agrees() const { return bus.clean() && diverged() == 0; }
  /// Less is wrong than in `other`.
  bool better_than(const MachineOutcome& other) const;
};

MachineOutcome outcome_of(const MachineFile& machine, const ComparisonPolicy& policy);

}  // namespace citcat
