#include "cli/transaction_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "events/capture_time.h"

namespace citcat {
namespace {

constexpr std::array<std::pair<BusFlag, std::string_view>, 9> kFlagNames{{
    {kLine, "line"},
    {kWriteBack, "write-back"},
    {kUncacheable, "uncacheable"},
    {kSnoop, "snoop"},
    {kStateWindow, "state-window"},
    {kStoreFill, "store-fill"},
    {kPrefix, "prefix"},
    {kFlushed, "flushed"},
    {kBranchTarget, "branch_target"},
}};

std::vector<std::string_view> flag_names(const BusTransaction& t) {
  std::vector<std::string_view> names;
  for (const auto& [flag, name] : kFlagNames) {
    if (t.has(flag)) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string position_text(bool known, const Position& position) {
  if (!known) return "-";
  if (position.iteration == 0) return std::to_string(position.instruction);
  return fmt::format("{}+{}", position.instruction, position.iteration);
}

std::string bytes_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

std::string transaction_text(const BusTransaction& t, bool has_data, double clock_hz) {
  const bool clock = t.has(kClockKnown);
  std::string line = fmt::format("{:>10} {:>12}", t.index, clock ? std::to_string(t.clock) : "-");
  if (clock_hz > 0)
    line += fmt::format(" {:>14}", clock ? capture_time_text(t.clock, clock_hz) : "-");
  line += fmt::format(" {:>10} {:<21} {:08x} {}", position_text(t.has(kPositionKnown), t.position),
                      bus_op_name(t.op), t.address.value, has_data ? bytes_text(t.bytes()) : "-");
  for (const std::string_view name : flag_names(t)) line += fmt::format(" {}", name);
  return line;
}

std::string_view transaction_titles(double clock_hz) {
  if (clock_hz > 0) {
    return "     index        clock           time   position operation             address  data, "
           "flags";
  }
  return "     index        clock   position operation             address  data, flags";
}

nlohmann::ordered_json transaction_json(const BusTransaction& t, bool has_data, double clock_hz) {
  nlohmann::ordered_json json;
  json["index"] = t.index;
  if (t.has(kClockKnown)) {
    json["clock"] = t.clock;
    if (clock_hz > 0) json["seconds"] = static_cast<double>(t.clock) / clock_hz;
  }
  if (t.has(kPositionKnown)) {
    json["instruction"] = t.position.instruction;
    json["iteration"] = t.position.iteration;
  }
  json["op"] = bus_op_name(t.op);
  json["address"] = fmt::format("{:08x}", t.address.value);
  json["size"] = t.size;
  json["data"] = nullptr;
  if (has_data) json["data"] = bytes_text(t.bytes());
  json["flags"] = flag_names(t);
  return json;
}

}  // namespace citcat
