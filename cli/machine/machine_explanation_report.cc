#include "cli/machine/machine_explanation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/divergence_report.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

Json machine_cause_json(const TriedMachineCause& tried) {
  const MachineCause& cause = tried.cause;
  Json json;
  json["cause"] = machine_cause_name(cause.kind);
  json["text"] = cause.text;
  json["processor"] = cause.processor;
  json["transaction"] = nullptr;
  if (cause.transaction) json["transaction"] = *cause.transaction;
  json["instruction"] = nullptr;
  if (cause.position) json["instruction"] = cause.position->instruction;
  json["address"] = cause.address.low32();
  json["to_processor"] = nullptr;
  json["to_instruction"] = nullptr;
  if (cause.change.kind == BusChange::Kind::give) {
    json["to_processor"] = cause.change.to;
    if (cause.change.position) json["to_instruction"] = cause.change.position->instruction;
  }
  json["repairs"] = tried.repairs;
  return json;
}

/// "2 of 3 processors diverge from the evidence".
std::string disagreement(const MachineOutcome& outcome) {
  std::string text = fmt::format("{} of {} processors diverge from the evidence",
                                 outcome.diverged(), outcome.replays.size());
  if (!outcome.bus.clean())
    text += fmt::format("; {} contradictions among them", outcome.bus.contradictions);
  return text;
}

}  // namespace

Json machine_explanation_json(const MachineExplanation& explanation) {
  Json json;
  json["causes"] = Json::array();
  for (const TriedMachineCause& tried : explanation.causes)
    json["causes"].push_back(machine_cause_json(tried));
  json["tried"] = explanation.tried;
  return json;
}

void print_machine_explanation(const MachineExplanation& explanation, const Console& console) {
  const MachineOutcome& outcome = explanation.outcome;
  console.print_line("diverged: " + disagreement(outcome));
  for (std::size_t p = 0; p < outcome.replays.size(); ++p) {
    const ReplayReport& its = outcome.replays[p];
    console.print_line(fmt::format("  processor {:<3} {}: {} instructions", p,
                                   its.divergence ? "diverged" : "match", its.instructions));
    if (!its.divergence) continue;
    for (const std::string& line : divergence_lines(*its.divergence, 0))
      console.print_line("    " + line);
  }
  if (outcome.bus.first) {
    const BusContradiction& first = *outcome.bus.first;
    console.print_line(fmt::format("  shared bus    processor {} at clock {}: {}", first.processor,
                                   first.t.clock, first.reason));
    if (!first.expected.empty()) console.print_line("    expected " + first.expected);
    console.print_line("    found    " + first.found);
  }
  console.print(
      fmt::format("\ncauses that concern several processors: {} tried\n", explanation.tried));
  if (explanation.causes.empty()) console.print_line("  none of them leaves fewer contradictions");
  int rank = 0;
  for (const TriedMachineCause& tried : explanation.causes) {
    console.print(fmt::format("{:>3}. {:<20} {}\n{:26}{}\n", ++rank,
                              machine_cause_name(tried.cause.kind), tried.cause.text, "",
                              tried.repairs
                                  ? "everything then agrees, to the end"
                                  : "fewer contradictions are then left, but still some"));
  }
}

}  // namespace citcat
