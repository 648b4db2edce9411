#include "cli/divergence_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "events/capture_time.h"

namespace citcat {

namespace {

/// When the capture shows what the replay does not do.
std::optional<std::uint64_t> clock_of(const Divergence& d) {
  if (!d.shown || !d.shown->has(kClockKnown)) return std::nullopt;
  return d.shown->clock;
}

}  // namespace

nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence,
                                       double clock_hz) {
  if (!divergence) return nullptr;
  const Divergence& d = *divergence;
  nlohmann::ordered_json json;
  json["position"] = d.position.instruction;
  json["iteration"] = d.position.iteration;
  json["linear"] = nullptr;
  if (d.linear) json["linear"] = d.linear->value;
  json["transaction"] = nullptr;
  if (d.transaction != kNoTransaction) json["transaction"] = d.transaction;
  json["clock"] = nullptr;
  json["seconds"] = nullptr;
  if (const auto clock = clock_of(d)) {
    json["clock"] = *clock;
    if (clock_hz > 0) json["seconds"] = static_cast<double>(*clock) / clock_hz;
  }
  json["reason"] = d.reason;
  json["expected"] = d.expected;
  json["found"] = d.found;
  json["causes"] = d.causes;
  return json;
}

std::vector<std::string> divergence_lines(const Divergence& d, double clock_hz) {
  std::string head = "diverged at " + place_text(d);
  if (d.transaction != kNoTransaction) head += fmt::format(", transaction {}", d.transaction);
  if (const auto clock = clock_of(d)) {
    head += fmt::format(", clock {}", *clock);
    if (clock_hz > 0) head += fmt::format(" ({})", capture_time_text(*clock, clock_hz));
  }
  std::vector<std::string> lines = {head + ": " + d.reason};
  if (!d.expected.empty()) lines.push_back("  expected  " + d.expected);
  if (!d.found.empty()) lines.push_back("  found     " + d.found);
  for (const std::string& cause : d.causes) lines.push_back("  perhaps   " + cause);
  return lines;
}

}  // namespace citcat
