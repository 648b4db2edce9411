#include "cli/divergence_report.h"

#include <fmt/format.h>

namespace citcat {

nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence) {
  if (!divergence) return nullptr;
  const Divergence& d = *divergence;
  nlohmann::ordered_json json;
  json["position"] = d.position.instruction;
  json["iteration"] = d.position.iteration;
  json["linear"] = nullptr;
  if (d.linear) json["linear"] = d.linear->value;
  json["transaction"] = nullptr;
  if (d.transaction != kNoTransaction) json["transaction"] = d.transaction;
  json["reason"] = d.reason;
  json["expected"] = d.expected;
  json["found"] = d.found;
  json["causes"] = d.causes;
  return json;
}

std::vector<std::string> divergence_lines(const Divergence& d) {
  std::string head = "diverged at " + place_text(d);
  if (d.transaction != kNoTransaction) head += fmt::format(", transaction {}", d.transaction);
  std::vector<std::string> lines = {head + ": " + d.reason};
  if (!d.expected.empty()) lines.push_back("  expected  " + d.expected);
  if (!d.found.empty()) lines.push_back("  found     " + d.found);
  for (const std::string& cause : d.causes) lines.push_back("  perhaps   " + cause);
  return lines;
}

}  // namespace citcat
