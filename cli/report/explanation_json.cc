#include "cli/report/explanation_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/divergence_report.h"

namespace citcat {

namespace {

nlohmann::ordered_json line_json(const ContextLine& line) {
  std::string bytes;
  for (const std::uint8_t b : line.bytes) bytes += fmt::format("{:02x}", b);
  return {{"instruction", line.position.instruction},
          {"iteration", line.position.iteration},
          {"address", fmt::format("{:08x}", line.linear.value)},
          {"bytes", bytes},
          {"text", line.text},
          {"accesses", line.accesses}};
}

nlohmann::ordered_json cause_json(const TriedCause& tried, double clock_hz) {
  nlohmann::ordered_json json;
  json["cause"] = cause_name(tried.cause.kind);
  json["text"] = tried.cause.text;
  json["transaction"] = nullptr;
  const std::uint64_t blamed = blamed_transaction(tried.cause);
  if (blamed != kNoTransaction) json["transaction"] = blamed;
  json["repairs"] = tried.repairs;
  json["tied"] = tried.tied;
  json["suspected"] = tried.suspected;
  json["other_values"] = tried.other_values;
  json["equivalent_values"] = tried.equivalent_values;
  json["agrees_for"] = tried.agrees_until;
  json["price"] = tried.cause.price;
  json["hints"] = nlohmann::ordered_json::parse(hints_text({"", tried.cause.hints})).at("hints");
  json["next"] = divergence_json(tried.next, clock_hz);
  return json;
}

nlohmann::ordered_json round_json(const ExplainedDivergence& round, double clock_hz) {
  nlohmann::ordered_json json;
  json["divergence"] = divergence_json(round.divergence, clock_hz);
  json["context"] = nlohmann::ordered_json::array();
  for (const ContextLine& line : round.context) json["context"].push_back(line_json(line));
  json["lineage"] = nlohmann::ordered_json::array();
  for (const LineageLine& lineage : round.lineage) {
    nlohmann::ordered_json item;
    item["source"] = lineage.source;
    item["transaction"] = nullptr;
    if (lineage.transaction != kNoTransaction) item["transaction"] = lineage.transaction;
    item["path"] = nlohmann::ordered_json::array();
    for (const ContextLine& line : lineage.path) item["path"].push_back(line_json(line));
    json["lineage"].push_back(std::move(item));
  }
  json["causes"] = nlohmann::ordered_json::array();
  for (const TriedCause& tried : round.causes)
    json["causes"].push_back(cause_json(tried, clock_hz));
  json["tried"] = round.tried;
  json["not_tried"] = round.not_tried;
  json["instructions"] = round.instructions;
  return json;
}

}  // namespace

nlohmann::ordered_json explanation_json(const Explanation& explanation, const HintFile& hints,
                                        double clock_hz) {
  nlohmann::ordered_json json;
  const bool given_up = !explanation.given_up.empty();
  json["verdict"] = !explanation.rounds.empty() ? "diverged" : given_up ? "unknown" : "match";
  json["instructions"] = explanation.report.instructions;
  json["repaired"] = !explanation.rounds.empty() && explanation.repaired;
  json["given_up"] = nullptr;
  if (given_up) json["given_up"] = explanation.given_up;
  json["rounds"] = nlohmann::ordered_json::array();
  for (const ExplainedDivergence& round : explanation.rounds) {
    json["rounds"].push_back(round_json(round, clock_hz));
  }
  json["hints"] = nlohmann::ordered_json::parse(hints_text(hints)).at("hints");
  return json;
}

}  // namespace citcat
