#pragma once
// Why the processors of a machine disagree with their bus or with each other: causes that concern
// several of them, each tried by deriving and replaying all of them again.

#include <functional>
#include <string>
#include <vector>

#include "events/archive/machine_file.h"
#include "replay/diagnose/processors/machine_causes.h"
#include "replay/diagnose/processors/machine_outcome.h"
#include "replay/session/time_budget.h"

namespace citcat {

struct MachineExplainOptions {
  ComparisonPolicy policy;
  TimeBudget* time = nullptr;  ///< may be null
  /// A folder for archives that are made for trials and removed again.
  std::string folder;
  std::function<void(std::size_t tried)> progress;  ///< may be empty
};

struct TriedMachineCause {
  MachineCause cause;
  bool repairs = false;  ///< everything then agrees
};

struct MachineExplanation {
  MachineOutcome outcome;  ///< as it is
  std::vector<BusTrouble> troubles;
  /// Those with which less is wrong, the best first.
  std::vector<TriedMachineCause> causes;
  std::size_t tried = 0;
  bool repaired() const { return !causes.empty() && causes.front().repairs; }
};

MachineExplanation explain_machine(const MachineFile& machine,
                                   const MachineExplainOptions& options);

}  // namespace citcat
