#pragma once
// Checks that the processors of a machine saw the same memory while a page shows them: the page
// must not say that the machine agrees if `verify` says that it does not.

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

class Machine;

class MachineCheck {
 public:
  /// `compares`: what is shown of each processor is compared with its evidence, by `policy`.
  MachineCheck(const MachineFile& machine, bool compares, ComparisonPolicy policy);

  /// The replay of that processor agreed with its evidence to the end, where `at_end` is.
  void ended(std::size_t processor, const Machine& at_end);
  /// Checks so many more transactions, and behind the last of them the stores of each processor
  /// that has ended; false where there is nothing left to check.
  bool look_further(std::uint64_t transactions);
  /// No processor took anything that nobody gave, nor stored to a line that was not its own, as far
  /// as is known.
  bool clean() const { return !bus_ || (check_.result().clean() && stores_.clean()); }
  /// The verdict on all of them, as the answer to `runs` has it (docs/formats/view-interface.md);
  /// `each`: those on one processor alone, as the answers to `run` have them.
  nlohmann::ordered_json verdict(const std::vector<nlohmann::ordered_json>& each) const;

 private:
  bool is_known() const { return !bus_ || (known_ && changed_.empty()); }

  MachineFile machine_;
  ComparisonPolicy policy_;
  std::vector<RecordingFile> files_;
  CrossCheck check_;
  std::optional<SharedBus> bus_;  ///< nothing where it cannot be compared
  bool known_ = false;            ///< all transactions are checked
  /// Lines that these processors have changed in their caches, still to be checked.
  std::map<std::size_t, std::vector<PhysAddr>> changed_;
  CrossCheckResult stores_;  ///< of lines that were checked
};

}  // namespace citcat
