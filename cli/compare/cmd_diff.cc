// citcat diff: where two recorded runs begin to differ.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/compare/compared_recording.h"
#include "cli/compare/difference_output.h"
#include "cli/parsing/replay_options.h"
#include "sql/compare/run_difference.h"

namespace citcat {
namespace {

struct DiffArguments {
  std::string a, b;
  std::uint64_t from_a = 0, from_b = 0;
  bool unchecked = false, json = false;
};

nlohmann::ordered_json values_json(const std::vector<sql::ComparedValue>& values) {
  auto all = nlohmann::ordered_json::array();
  const auto number = [](const std::optional<std::uint64_t>& n) -> nlohmann::ordered_json {
    if (!n) return nullptr;
    return *n;
  };
  for (const sql::ComparedValue& v : values) {
    all.push_back({{"name", v.name}, {"a", number(v.a)}, {"b", number(v.b)}});
  }
  return all;
}

void print_values(const char* what, const std::vector<sql::ComparedValue>& values,
                  const Console& console) {
  const auto text = [](const std::optional<std::uint64_t>& n) {
    return n ? fmt::format("{:x}", *n) : std::string("?");
  };
  if (values.empty()) return;
  console.print(fmt::format("{} that differ before the last common instruction\n", what));
  for (const sql::ComparedValue& v : values) {
    console.print(fmt::format("  {:<12} {} {}\n", v.name, text(v.a), text(v.b)));
  }
}

/// A run that does not reach the first instruction to compare would be equal to any other.
void require_reached(ComparedRecording& run, const char* option, std::uint64_t from) {
  const std::uint64_t instructions = run.source().instructions();
  if (instructions == 0 || from <= instructions) return;
  throw UsageError(fmt::format("{} {}: {} ends after {} instructions", option, from,
                               run.source().path(), instructions));
}

ExitCode run_diff(const DiffArguments& arguments, const Console& console) {
  ComparedRecording a(arguments.a, !arguments.unchecked, console);
  ComparedRecording b(arguments.b, !arguments.unchecked, console);
  require_reached(a, "--from-a", arguments.from_a);
  require_reached(b, "--from-b", arguments.from_b);
  const sql::RunDifference found =
      sql::difference_of(a.source(), arguments.from_a, b.source(), arguments.from_b);
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["verdict"] = found.differs ? "differ" : "equal";
    json["position"] = found.differs ? nlohmann::ordered_json(found.a->position) : nullptr;
    json["a"] = compared_json(found.a);
    json["b"] = compared_json(found.b);
    json["compared"] = found.compared;
    json["handlers"] = found.handlers;
    json["last"] = {{"a", compared_json(found.last_a)}, {"b", compared_json(found.last_b)}};
    if (!found.differs) json["last"] = nullptr;
    json["registers"] = values_json(found.registers);
    json["memory"] = values_json(found.memory);
    console.print_json(json);
  } else {
    console.print_verdict(!found.differs, found.differs ? "differ" : "equal",
                          fmt::format(": {} instructions are the same", found.compared));
    if (found.handlers != 0) {
      console.print_line(fmt::format(
          "interrupt handlers left out: {}, which only one run entered, or in which the "
          "two took different paths",
          found.handlers));
    }
    if (found.differs || found.a || found.b) {
      console.print_line("  a " + compared_text(found.a));
      console.print_line("  b " + compared_text(found.b));
    }
    if (found.differs && found.last_a) {
      console.print_line("after " + compared_text(found.last_a));
      print_values("registers", found.registers, console);
      print_values("bytes", found.memory, console);
    }
  }
  const bool unsure = a.warn(console) | b.warn(console);
  return found.differs || unsure ? ExitCode::answer_is_no : ExitCode::ok;
}

CommandRun define_diff(const CommandParser& parser) {
  auto arguments = std::make_shared<DiffArguments>();
  parser.add_option("A", arguments->a, "Recording").required();
  parser.add_option("B", arguments->b, "Recording of another run of the same machine").required();
  parser.add_option("--from-a", arguments->from_a, "First instruction of A to compare");
  parser.add_option("--from-b", arguments->from_b, "First instruction of B to compare");
  define_unchecked(parser, arguments->unchecked);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_diff(*arguments, console); };
}

}  // namespace

extern const Command kDiffCommand{"diff", "Say where two recorded runs begin to differ",
                                  "citcat diff good.citcat bad.citcat --json", define_diff};

}  // namespace citcat
