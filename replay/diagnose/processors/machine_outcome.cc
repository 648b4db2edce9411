#include "replay/diagnose/processors/machine_outcome.h"

#include <algorithm>

#include "replay/processors/unshown_commands.h"
#include "replay/processors/unshown_stores.h"

namespace citcat {

std::size_t MachineOutcome::diverged() const {
  return static_cast<std::size_t>(
      std::count_if(replays.begin(), replays.end(),
                    [](const ReplayReport& r) { return r.divergence.has_value(); }));
}

bool MachineOutcome::better_than(const MachineOutcome& other) const {
  const std::size_t ours = diverged(), theirs = other.diverged();
  if (ours > theirs || bus.contradictions > other.bus.contradictions) return false;
  return ours < theirs || bus.contradictions < other.bus.contradictions;
}

MachineOutcome outcome_of(const MachineFile& machine, const ComparisonPolicy& policy) {
  MachineOutcome outcome;
  const std::vector<RecordingFile> files = open_processors(machine);
  CrossCheck check = cross_check_of(machine, files);
  SharedBus bus = shared_bus_of(machine, files);
  outcome.bus = check_shared_bus(bus, check);
  for (std::size_t p = 0; p < files.size(); ++p) {
    SessionOptions options;
    options.policy = policy;
    options.plain_first = true;
    options.start_over = [] { return nullptr; };
    ReplaySession run(files[p], nullptr, options);
    outcome.replays.push_back(run.run());
    if (outcome.replays.back().divergence) continue;
    const auto changed = lines_changed_in_cache(files[p], run.machine());
    check_changed_lines(machine, check, p, changed, policy, outcome.bus);
    check_unasked_message(machine, check, p, policy, outcome.bus);
  }
  return outcome;
}

}  // namespace citcat
