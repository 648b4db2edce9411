#include "cli/idtrace/idtrace_count.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_report.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

void print_totals(const Json& json, const Console& console) {
  const auto line = [&](const char* name, const Json& value) {
    if (!value.is_null()) console.print(fmt::format("{:<20} {}\n", name, json_text(value)));
  };
  for (const char* const name : {"instructions", "executions", "iterations"}) {
    line(name, json.at(name));
  }
  const Json& blocks = json.at("blocks");
  line("blocks in the file", blocks.at("in_file"));
  line("blocks executed", blocks.at("static"));
  line("block executions", blocks.at("executed"));
  line("blocks for 90 %", blocks.at("for_90_percent"));
  console.print("\n     count  instruction\n");
  for (const Json& row : json.at("mix")) {
    console.print(fmt::format("{:>10}  {}\n", row.at("count").get<std::uint64_t>(),
                              row.at("mnemonic").get<std::string>()));
  }
  console.print("\nexecutions  instructions  block\n");
  for (const Json& row : blocks.at("hottest")) {
    console.print(fmt::format("{:>10}  {:>12}  {}\n", row.at("executions").get<std::uint64_t>(),
                              row.at("instructions").get<std::uint64_t>(),
                              row.at("address").get<std::string>()));
  }
}

/// Prints the entries of traces that do not hold every instruction.
void print_entries(const Json& json, const Console& console) {
  for (const auto& [name, value] : json.items()) {
    if (!value.is_object()) {
      console.print(fmt::format("{:<20} {}\n", name,
                                value.is_string() ? value.get<std::string>() : json_text(value)));
      continue;
    }
    for (const auto& [key, count] : value.items()) {
      console.print(fmt::format("  {:<18} {}\n", key, json_text(count)));
    }
  }
}

}  // namespace

void IdtraceCount::define(const CommandParser& parser) {
  files.define(parser);
  parser.add_option("--top", top, "Number of blocks of an IDtrace file to list (default: 20)");
}

bool IdtraceCount::takes(const std::string& path) {
  const FileKind kind = find_file_kind(path).kind;
  return kind == FileKind::idtrace_trace || kind == FileKind::idtrace_counts;
}

void IdtraceCount::print(const std::string& path, bool json, const Console& console) const {
  const Json counted = idtrace_count_json(path, files, top);
  if (json) {
    console.print_json(counted);
  } else if (counted.contains("mix")) {
    print_totals(counted, console);
  } else {
    print_entries(counted, console);
  }
}

}  // namespace citcat
