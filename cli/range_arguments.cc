#include "cli/range_arguments.h"

#include <fmt/format.h>

#include <limits>

#include "events/position_text.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

Position parse(const std::string& text, const char* option) {
  const std::optional<Position> position = parse_position(text);
  if (!position) {
    throw UsageError(std::string(option) + ": expected a position, N or N+K, found " + text);
  }
  return *position;
}

}  // namespace

Position RangeArguments::first() const { return from.empty() ? Position{} : parse(from, "--from"); }

Position RangeArguments::end() const {
  if (to.empty()) return {std::numeric_limits<std::uint64_t>::max(), 0};
  return parse(to, "--to");
}

ReplayRange RangeArguments::instructions() const {
  const Position begin = first(), last = end();
  if (begin > last) throw UsageError("--from must come before --to");
  return {begin.instruction, last.instruction + (last.iteration != 0 ? 1 : 0)};
}

std::optional<Position> RangeArguments::end_within() const {
  return end().iteration != 0 ? std::optional(end()) : std::nullopt;
}

void RangeArguments::require_reached(const std::string& file, std::uint64_t instructions) const {
  const Position begin = first();
  const bool is_empty = !to.empty() && begin >= end();
  if (begin == Position{} || is_empty || instructions > begin.instruction) return;
  throw UsageError(
      fmt::format("--from {}: {} ends after {} instructions", from, file, instructions));
}

void RangeArguments::define(const CommandParser& parser) {
  parser.add_option("--from", from,
                    "Where to begin: instruction N, or N+K within a REP (default: the beginning)");
  parser.add_option("--to", to, "Where to stop: this position is not included (default: the end)");
}

}  // namespace citcat
