// citcat count: how much ran, by instruction and by block.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/idtrace/idtrace_report.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

struct CountArguments {
  std::string file;
  IdtraceArguments idtrace;
  std::size_t top = 20;
  bool json = false;
};

void print_totals(const Json& json, const Console& console) {
  const auto line = [&](const char* name, const Json& value) {
    if (!value.is_null()) console.print(fmt::format("{:<20} {}\n", name, value.dump()));
  };
  for (const char* const name : {"instructions", "executions", "iterations"}) {
    line(name, json.at(name));
  }
  const Json& blocks = json.at("blocks");
  line("blocks", blocks.at("distinct"));
  line("blocks executed", blocks.at("executed"));
  line("block executions", blocks.at("executions"));
  line("blocks for 90 %", blocks.at("for_90_percent"));
  console.print("\n     count  instruction\n");
  for (const Json& row : json.at("mix")) {
    console.print(fmt::format("{:>10}  {}\n", row.at("count").get<std::uint64_t>(),
                              row.at("mnemonic").get<std::string>()));
  }
  console.print("\nexecutions  instructions  block\n");
  for (const Json& row : blocks.at("top")) {
    console.print(fmt::format("{:>10}  {:>12}  {}\n", row.at("executions").get<std::uint64_t>(),
                              row.at("instructions").get<std::uint64_t>(),
                              row.at("address").get<std::string>()));
  }
}

/// Of traces that do not have every instruction.
void print_entries(const Json& json, const Console& console) {
  for (const auto& [name, value] : json.items()) {
    if (!value.is_object()) {
      console.print(fmt::format("{:<20} {}\n", name,
                                value.is_string() ? value.get<std::string>() : value.dump()));
      continue;
    }
    for (const auto& [key, count] : value.items()) {
      console.print(fmt::format("  {:<18} {}\n", key, count.dump()));
    }
  }
}

ExitCode run_count(const CountArguments& arguments, const Console& console) {
  const Json json = idtrace_count_json(arguments.file, arguments.idtrace, arguments.top);
  if (arguments.json) {
    console.print_json(json);
  } else if (json.contains("mix")) {
    print_totals(json, console);
  } else {
    print_entries(json, console);
  }
  return ExitCode::ok;
}

CommandRun define_count(CLI::App& app) {
  auto arguments = std::make_shared<CountArguments>();
  app.add_option("FILE", arguments->file, "Profile (.cnt) or trace (.trc) of IDtrace's")->required();
  arguments->idtrace.define(app);
  app.add_option("--top", arguments->top, "Blocks to list (20)");
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_count(*arguments, console); };
}

}  // namespace

extern const Command kCountCommand{"count", "Count instructions and blocks of an IDtrace file",
                                   "citcat count run.cnt --top 5", define_count};

}  // namespace citcat
