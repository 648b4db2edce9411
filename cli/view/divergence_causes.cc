#include "cli/view/divergence_causes.h"

#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "formats/text/shell_word.h"
#include "replay/session/time_budget.h"

namespace citcat {

using Json = nlohmann::ordered_json;

std::optional<Explanation> find_causes(
    const PlacedRecording& placed, const ComparisonPolicy& policy, unsigned seconds,
    const std::function<void(const char* what, std::uint64_t done)>& progress) {
  const RecordingFile& file = placed.file;
  if (seconds == 0 || file.meta().evidence != EvidenceMode::full) return std::nullopt;
  TimeBudget time(seconds, TimeBudget::Counts::all, interrupt_requested);
  ExplainOptions options;
  options.policy = policy;
  options.policy.waived = file.waived();
  options.policy.told_changes = file.told_changes();
  options.time = &time;
  options.rounds = 1;
  options.progress = progress;
  const auto evidence = [&file] { return file.evidence(); };
  if (needs_placement(file.recording()) && placed.search) {
    return explain_unplaced(file.recording(), evidence, *placed.search, options);
  }
  return explain(file.recording(), evidence, options);
}

Json causes_answer(const std::optional<Explanation>& explanation) {
  Json json = {{"causes", Json::array()}};
  if (!explanation) {
    json["why"] = "the recording holds no evidence that causes could be tried with";
    return json;
  }
  if (explanation->rounds.empty()) return json;
  for (const TriedCause& tried : explanation->rounds.front().causes) {
    json["causes"].push_back({{"text", tried.cause.text},
                              {"repairs", tried.repairs},
                              {"tried", !tried.suspected},
                              {"as_likely", tried.tied}});
  }
  if (!explanation->given_up.empty()) json["why"] = explanation->given_up;
  return json;
}

Json divergence_item(const std::string& recording, const std::string& text,
                     const std::string& cause) {
  std::string whole = "the replay diverges from its evidence: " + text;
  if (!cause.empty()) whole += "; perhaps: " + cause;
  return {{"text", whole},
          {"moment", "divergence"},
          {"command", "citcat explain " + shell_word(recording)}};
}

}  // namespace citcat
