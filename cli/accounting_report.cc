#include "cli/accounting_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace citcat {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<std::uint64_t>& number) {
  if (!number) return nullptr;
  return *number;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string row(const char* what, const std::string& text) {
  return fmt::format("  {:<18} {}", what, text);
}

/// In the text; the JSON has all.
constexpr std::size_t kMostListed = 20;

std::string input_name(const UnconstrainedInput& input) {
  switch (input.kind) {
    case UnconstrainedInput::Kind::memory:
      return fmt::format("{:08x}", input.address.value);
    case UnconstrainedInput::Kind::reg:
      return input.name;
    case UnconstrainedInput::Kind::port_read:
      return fmt::format("port read {}", input.number);
  }
  return "";
}

std::uint64_t count_of(const std::vector<UnconstrainedInput>& inputs,
                       UnconstrainedInput::Kind kind) {
  return static_cast<std::uint64_t>(std::count_if(
      inputs.begin(), inputs.end(), [kind](const auto& input) { return input.kind == kind; }));
}

void add_name(const UnconstrainedInput& input, nlohmann::ordered_json& item) {
  if (input.kind == UnconstrainedInput::Kind::memory) {
    item["address"] = fmt::format("{:08x}", input.address.value);
  } else if (input.kind == UnconstrainedInput::Kind::reg) {
    item["register"] = input.name;
  } else {
    item["port_read"] = input.number;
  }
}

nlohmann::ordered_json unconstrained_json(const std::vector<UnconstrainedInput>& inputs) {
  nlohmann::ordered_json json;
  json["image_bytes"] = count_of(inputs, UnconstrainedInput::Kind::memory);
  json["registers"] = count_of(inputs, UnconstrainedInput::Kind::reg);
  json["port_reads"] = count_of(inputs, UnconstrainedInput::Kind::port_read);
  json["inputs"] = nlohmann::ordered_json::array();
  for (const UnconstrainedInput& input : inputs) {
    nlohmann::ordered_json item;
    add_name(input, item);
    item["instruction"] = input.first.instruction;
    item["iteration"] = input.first.iteration;
    item["linear"] = fmt::format("{:08x}", input.linear.value);
    item["lines"] = input.lines;
    json["inputs"].push_back(std::move(item));
  }
  return json;
}

void add_unconstrained(const std::vector<UnconstrainedInput>& inputs,
                       std::vector<std::string>& lines) {
  using Kind = UnconstrainedInput::Kind;
  lines.push_back(row("unconstrained",
                      inputs.empty()
                          ? std::string("nothing that the trace depends on")
                          : fmt::format("the trace depends on {} bytes of the image, {} registers "
                                        "and {} port reads on which no compared value depends",
                                        count_of(inputs, Kind::memory), count_of(inputs, Kind::reg),
                                        count_of(inputs, Kind::port_read))));
  for (const UnconstrainedInput& input :
       std::span(inputs).first(std::min(inputs.size(), kMostListed))) {
    lines.push_back(fmt::format("    {:<16} lines: {}, the first of instruction {} at {:08x}",
                                input_name(input), input.lines, input.first.instruction,
                                input.linear.value));
  }
  if (inputs.size() > kMostListed) {
    lines.push_back(fmt::format("    and {} more (--json has all)", inputs.size() - kMostListed));
  }
}

/// As the JSON has it; empty where nothing confirms.
const char* confirmation_name(Confirmation::Kind kind) {
  switch (kind) {
    case Confirmation::Kind::none:
      break;
    case Confirmation::Kind::seen_again:
      return "seen again";
    case Confirmation::Kind::written_back:
      return "written back";
    case Confirmation::Kind::stored:
      return "stored";
    case Confirmation::Kind::addressed:
      return "addressed";
    case Confirmation::Kind::port:
      return "port";
    case Confirmation::Kind::ran_next:
      return "ran next";
  }
  return "";
}

bool has_place(Confirmation::Kind kind) {
  return kind != Confirmation::Kind::none && kind != Confirmation::Kind::seen_again;
}

nlohmann::ordered_json line_json(const std::optional<LineOrigins>& line) {
  if (!line) return nullptr;
  nlohmann::ordered_json json;
  json["instruction"] = line->at.instruction;
  json["linear"] = fmt::format("{:08x}", line->linear.value);
  json["complete"] = line->complete;
  json["inputs"] = nlohmann::ordered_json::array();
  for (const LineInput& input : line->inputs) {
    nlohmann::ordered_json item;
    add_name(input.input, item);
    const Confirmation::Kind kind = input.confirmed.kind;
    item["confirmed_by"] = nullptr;
    if (kind != Confirmation::Kind::none) item["confirmed_by"] = confirmation_name(kind);
    item["confirmed_at"] = nullptr;
    if (has_place(kind)) item["confirmed_at"] = input.confirmed.at.instruction;
    json["inputs"].push_back(std::move(item));
  }
  return json;
}

void add_line(const LineOrigins& line, std::vector<std::string>& lines) {
  const auto free = std::count_if(line.inputs.begin(), line.inputs.end(), [](const LineInput& i) {
    return i.confirmed.kind == Confirmation::Kind::none;
  });
  lines.push_back(row(
      "how known",
      fmt::format(
          "instruction {} at {:08x} depends on {}{} inputs, {} of them not confirmed by anything",
          line.at.instruction, line.linear.value, line.complete ? "" : "more than ",
          line.inputs.size(), free)));
  for (const LineInput& input : line.inputs) {
    const Confirmation& c = input.confirmed;
    std::string how = "nothing";
    if (c.kind != Confirmation::Kind::none) how = confirmation_name(c.kind);
    if (has_place(c.kind)) how += fmt::format(", instruction {}", c.at.instruction);
    lines.push_back(fmt::format("    {:<16} {}", input_name(input.input), how));
  }
}

}  // namespace

nlohmann::ordered_json accounting_json(const std::optional<Accounting>& accounting) {
  if (!accounting) return nullptr;
  const Accounting& a = *accounting;
  nlohmann::ordered_json json;
  json["transactions"] = a.transactions;
  json["compared"] = a.compared;
  json["evidence_bytes"] = a.evidence_bytes;
  json["instructions"] = a.instructions;
  json["start_routine"] = number_or_null(a.start_routine);
  json["cache_lines"] = a.cache_lines;
  json["refilled_at"] = number_or_null(a.refilled_at);
  json["image_bytes"] = a.image_bytes;
  json["assumed_registers"] = a.assumed_registers;
  json["interrupts"] = {{"all", a.interrupts},      {"counted", a.counted},
                        {"unique", a.unique},       {"equivalent", a.equivalent},
                        {"ambiguous", a.ambiguous}, {"none", a.unplaced}};
  json["external_writes"] = {{"all", a.external_writes}, {"by_order", a.external_unplaced}};
  json["port_reads"] = a.port_reads;
  json["internal_reads"] = a.internal_reads;
  json["hints"] = a.hints;
  json["unconstrained"] = unconstrained_json(a.unconstrained);
  json["line"] = line_json(a.line);
  return json;
}

std::vector<std::string> accounting_lines(const Accounting& a) {
  std::vector<std::string> lines;
  lines.push_back(
      row("evidence", fmt::format("{} of {} transactions agree ({:.2f} %), {:.2f} bytes "
                                  "written for each instruction",
                                  a.compared, a.transactions, share(a.compared, a.transactions),
                                  share(a.evidence_bytes, a.instructions) / 100)));
  if (a.start_routine) {
    lines.push_back(row(
        "start routine",
        fmt::format(
            "returned after {} instructions (the driver's routine, if a driver dumped the state)",
            *a.start_routine)));
  }
  if (a.cache_lines != 0) {
    lines.push_back(row("refill", a.refilled_at
                                      ? fmt::format("the cache's {} lines had been filled "
                                                    "by instruction {}",
                                                    a.cache_lines, *a.refilled_at)
                                      : fmt::format("the cache's {} lines were never all "
                                                    "filled",
                                                    a.cache_lines)));
  }
  lines.push_back(row(
      "memory", fmt::format("{} bytes known from their first read, none assumed", a.image_bytes)));
  lines.push_back(row("assumed", a.assumed_registers.empty()
                                     ? std::string("no register")
                                     : fmt::format("registers that nobody dumped: {}",
                                                   fmt::join(a.assumed_registers, ", "))));
  lines.push_back(
      row("interrupts", fmt::format("{} counted, {} unique, {} equivalent, {} "
                                    "ambiguous, {} not placed",
                                    a.counted, a.unique, a.equivalent, a.ambiguous, a.unplaced)));
  lines.push_back(
      row("from outside",
          fmt::format("{} port reads, {} writes by other bus masters, {} "
                      "of them placed by the order of the bus, {} values "
                      "that cross no bus",
                      a.port_reads, a.external_writes, a.external_unplaced, a.internal_reads)));
  if (a.hints != 0) lines.push_back(row("by hand", fmt::format("{} corrections", a.hints)));
  add_unconstrained(a.unconstrained, lines);
  if (a.line) add_line(*a.line, lines);
  return lines;
}

}  // namespace citcat
