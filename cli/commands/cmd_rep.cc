// citcat rep: what repeated string instructions did.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/idtrace/idtrace_report.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

struct RepArguments {
  std::string file;
  IdtraceArguments idtrace;
  bool json = false;
};

void print_text(const Json& json, const Console& console) {
  console.print("     begun  iterations     mean   longest  did nothing  instruction\n");
  for (const Json& row : json.at("repeats")) {
    const auto begun = row.at("begun").get<std::uint64_t>();
    const auto iterations = row.at("iterations").get<std::uint64_t>();
    console.print(fmt::format("{:>10}  {:>10} {:>8.1f} {:>9}  {:>11}  {}\n", begun, iterations,
                              static_cast<double>(iterations) / static_cast<double>(begun),
                              row.at("longest").get<std::uint64_t>(),
                              row.at("nothing_done").get<std::uint64_t>(),
                              row.at("instruction").get<std::string>()));
  }
}

ExitCode run_rep(const RepArguments& arguments, const Console& console) {
  const Json json = idtrace_repeats_json(arguments.file, arguments.idtrace);
  if (json.at("repeats").empty()) {
    console.warn(arguments.file +
                 ": nothing was repeated, or this is a cache trace that was made without the "
                 "option repeats");
  }
  if (arguments.json) {
    console.print_json(json);
  } else {
    print_text(json, console);
  }
  return ExitCode::ok;
}

CommandRun define_rep(const CommandParser& parser) {
  auto arguments = std::make_shared<RepArguments>();
  parser
      .add_option("FILE", arguments->file,
                  "Execution trace of IDtrace, or cache trace with repeat tags")
      .required();
  arguments->idtrace.define(parser);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_rep(*arguments, console); };
}

}  // namespace

extern const Command kRepCommand{
    "rep", "Show what the repeated string instructions in an IDtrace file did",
    "citcat rep run.trc", define_rep};

}  // namespace citcat
