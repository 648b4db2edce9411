#pragma once
// What the processors of a machine saw of each other, checked beside what is shown of them: a page
// must not say of such a machine that it agrees where `verify` says that it does not.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"

namespace citcat {

class MachineCheck {
 public:
  /// `compares`: what is shown of each processor is compared with its evidence.
  MachineCheck(const MachineFile& machine, bool compares);

  /// Checks so many more transactions; false where all of them are.
  bool look_further(std::uint64_t transactions);
  /// No processor took anything that nobody gave, as far as is known.
  bool clean() const { return !bus_ || check_.result().clean(); }
  /// The verdict on all of them, as the answer to `runs` has it (docs/formats/view-interface.md);
  /// `each`: those on one processor alone, as the answers to `run` have them.
  nlohmann::ordered_json verdict(const std::vector<nlohmann::ordered_json>& each) const;

 private:
  std::vector<RecordingFile> files_;
  CrossCheck check_;
  std::optional<SharedBus> bus_;  ///< nothing where it cannot be compared
  bool known_ = false;
};

}  // namespace citcat
