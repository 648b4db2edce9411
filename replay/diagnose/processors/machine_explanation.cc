#include "replay/diagnose/processors/machine_explanation.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "formats/io/error.h"
#include "replay/diagnose/processors/changed_machine.h"

namespace citcat {
namespace {

/// Causes tried for one trouble: on the bus alone, which is cheap, and by replays.
constexpr std::size_t kMostChecked = 256, kMostTried = 48;

/// An archive of a trial.
class TrialArchive {
 public:
  explicit TrialArchive(const std::string& folder)
      : path_(folder + "/citcat-trial-" + std::to_string(::getpid()) + ".citcat") {}
  ~TrialArchive() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TrialArchive(const TrialArchive&) = delete;
  TrialArchive& operator=(const TrialArchive&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Tries causes on one machine.
class MachineTrials {
 public:
  MachineTrials(const MachineFile& machine, const std::vector<RecordingFile>& files,
                const MachineOutcome& before, const MachineExplainOptions& options)
      : machine_(machine), files_(files), before_(before), options_(options) {
    // A bit that another processor changed is not told from one that was captured wrongly here.
    policy_ = options.policy;
    policy_.bit_changes = true;
  }

  /// Whether the bus alone does not speak against a cause.
  bool may_be(const MachineCause& cause) const {
    const std::uint64_t wrong = before_.bus.contradictions;
    const std::uint64_t now = check_changed_bus(machine_, files_, cause.change).contradictions;
    return now < wrong || (now == wrong && before_.diverged() != 0);
  }

  /// Nothing where no less is wrong then.
  std::optional<TriedMachineCause> attempt(MachineCause cause) const {
    const std::optional<MachineOutcome> outcome = outcome_with(cause.change);
    if (!outcome || !outcome->better_than(before_)) return std::nullopt;
    return TriedMachineCause{std::move(cause), outcome->agrees()};
  }

 private:
  /// Nothing where no replay takes what the change makes of the recording.
  std::optional<MachineOutcome> outcome_with(const BusChange& change) const {
    const TrialArchive archive(options_.folder);
    try {
      write_changed_machine(machine_, change, archive.path());
      return outcome_of(*MachineFile::find(archive.path()), policy_);
    } catch (const UsageError&) {
    } catch (const FormatError&) {
    }
    return std::nullopt;
  }

  const MachineFile& machine_;
  const std::vector<RecordingFile>& files_;
  const MachineOutcome& before_;
  const MachineExplainOptions& options_;
  ComparisonPolicy policy_;
};

}  // namespace

MachineExplanation explain_machine(const MachineFile& machine,
                                   const MachineExplainOptions& options) {
  MachineExplanation explanation;
  explanation.outcome = outcome_of(machine, options.policy);
  if (explanation.outcome.agrees()) return explanation;
  const std::vector<RecordingFile> files = open_processors(machine);
  const std::uint32_t line_bytes = shared_line_bytes(files.front().recording());
  explanation.troubles = troubles_of(machine, files, explanation.outcome);
  const MachineTrials trials(machine, files, explanation.outcome, options);
  std::set<std::string> told;
  for (const BusTrouble& trouble : explanation.troubles) {
    const BusNeighbourhood near = neighbourhood_of(machine, files, trouble, line_bytes);
    std::size_t left = kMostTried, to_check = kMostChecked;
    for (MachineCause& cause : machine_causes(files, trouble, near)) {
      if (is_spent(options.time) || explanation.repaired()) return explanation;
      if (!told.insert(cause.text).second) continue;
      if (to_check-- == 0) break;
      if (options.progress) options.progress(explanation.tried);
      ++explanation.tried;
      if (!trials.may_be(cause)) continue;
      if (left-- == 0) break;
      std::optional<TriedMachineCause> its = trials.attempt(std::move(cause));
      if (!its) continue;
      const auto at = its->repairs ? explanation.causes.begin() : explanation.causes.end();
      explanation.causes.insert(at, std::move(*its));
    }
  }
  return explanation;
}

}  // namespace citcat
