// citcat explain: why a replay leaves its evidence, and what would repair it.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/comparison_arguments.h"
#include "cli/divergence_report.h"
#include "cli/interrupt.h"
#include "cli/placed_recording.h"
#include "cli/staged_output.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "replay/diagnose/explanation.h"

namespace citcat {
namespace {

struct ExplainArguments {
  std::string recording, hints, output;
  unsigned rounds = 8;
  std::uint64_t budget = 400;
  unsigned time = 120;
  bool json = false;
  ComparisonPolicy comparison;
};

nlohmann::ordered_json line_json(const ContextLine& line) {
  std::string bytes;
  for (const std::uint8_t b : line.bytes) bytes += fmt::format("{:02x}", b);
  return {{"instruction", line.position.instruction},
          {"iteration", line.position.iteration},
          {"address", fmt::format("{:08x}", line.linear.u32())},
          {"bytes", bytes},
          {"text", line.text},
          {"accesses", line.accesses}};
}

nlohmann::ordered_json cause_json(const TriedCause& tried) {
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
  json["next"] = divergence_json(tried.next);
  return json;
}

nlohmann::ordered_json round_json(const ExplainedDivergence& round) {
  nlohmann::ordered_json json;
  json["divergence"] = divergence_json(round.divergence);
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
  for (const TriedCause& tried : round.causes) json["causes"].push_back(cause_json(tried));
  json["tried"] = round.tried;
  json["not_tried"] = round.not_tried;
  json["instructions"] = round.instructions;
  return json;
}

void print_json(const Explanation& explanation, const HintFile& hints, const Console& console) {
  nlohmann::ordered_json json;
  const bool given_up = !explanation.given_up.empty();
  json["verdict"] = !explanation.rounds.empty() ? "diverged" : given_up ? "unknown" : "match";
  json["instructions"] = explanation.report.instructions;
  json["repaired"] = !explanation.rounds.empty() && explanation.repaired;
  json["given_up"] = nullptr;
  if (given_up) json["given_up"] = explanation.given_up;
  json["rounds"] = nlohmann::ordered_json::array();
  for (const ExplainedDivergence& round : explanation.rounds) {
    json["rounds"].push_back(round_json(round));
  }
  json["hints"] = nlohmann::ordered_json::parse(hints_text(hints)).at("hints");
  console.print_json(json);
}

std::string line_text(const ContextLine& line) {
  std::string text = fmt::format("{:>12}  {:08x}  {:<32}", line.position.instruction,
                                 line.linear.u32(), line.text);
  if (!line.accesses.empty()) text += "  ; " + line.accesses;
  return text + "\n";
}

void print_round(const ExplainedDivergence& round, const Console& console) {
  for (const std::string& line : divergence_lines(round.divergence)) console.print(line + "\n");
  if (round.context.empty()) return;
  console.print("\nthe instructions before it\n");
  for (const ContextLine& line : round.context) console.print(line_text(line));
  if (!round.lineage.empty()) console.print("\nwhere its values came from\n");
  for (const LineageLine& lineage : round.lineage) {
    console.print("  " + lineage.source + "\n");
    for (const ContextLine& line : lineage.path) console.print(line_text(line));
  }
  console.print(fmt::format("\ncauses: {} tried, {} instructions replayed for it\n", round.tried,
                            round.instructions));
  if (round.causes.empty() || round.causes.front().suspected)
    console.print("  none of them makes the replay go on\n");
  int rank = 0;
  for (const TriedCause& tried : round.causes) {
    const std::string reach =
        tried.suspected ? "not tried: nothing in the recording could be changed for it"
        : tried.repairs ? "everything then agrees, to the end"
                        : fmt::format("agrees for {} instructions more", tried.agrees_until);
    console.print(fmt::format("{:>3}. {:<18} {}\n{:24}{}{}\n", ++rank, cause_name(tried.cause.kind),
                              tried.cause.text, "", reach,
                              tried.tied ? "; as likely as the first" : ""));
    if (tried.equivalent_values != 0) {
      console.print(fmt::format("{:24}equivalent: so it does with {} of {} other values tried\n",
                                "", tried.equivalent_values, tried.other_values));
    }
  }
  for (const std::string& what : round.not_tried) console.print("not tried: " + what + "\n");
}

void print_text(const Explanation& explanation, const std::string& output, const Console& console) {
  if (explanation.rounds.empty() && !explanation.given_up.empty()) {
    console.print(fmt::format("{}: the replay agrees so far, up to instruction {}\n",
                              explanation.given_up, explanation.report.instructions));
    return;
  }
  if (explanation.rounds.empty()) {
    console.print(fmt::format("match: {} instructions, nothing to explain\n",
                              explanation.report.instructions));
    return;
  }
  for (std::size_t i = 0; i < explanation.rounds.size(); ++i) {
    if (i != 0) console.print("\nwith the first of these causes repaired:\n");
    print_round(explanation.rounds[i], console);
  }
  if (!explanation.given_up.empty()) {
    console.print("\n" + explanation.given_up + ": what is above is what was found by then\n");
  }
  console.print(explanation.repaired ? "\nwith the first causes repaired the whole run agrees\n"
                                     : "\nthe run is not repaired\n");
  if (!output.empty()) {
    console.print("review " + output + ", then pass it back: citcat verify … --hints " + output +
                  "\n");
  }
}

void write_hints(const HintFile& hints, const std::string& path) {
  AtomicFile file(path);
  const std::string text = hints_text(hints);
  file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file.commit();
}

ExitCode run_explain(const ExplainArguments& arguments, const Console& console) {
  if (is_standard_output(arguments.output)) {
    throw UsageError(
        "-o: expected a file for the hints; the explanation goes to the standard "
        "output, with --json the hints among it");
  }
  TimeBudget time(arguments.time, TimeBudget::Counts::all, interrupt_requested);
  const PlacedRecording placed = open_placed(arguments.recording, console, arguments.hints, &time);
  const RecordingFile& file = placed.file;
  if (file.meta().evidence != EvidenceMode::full) {
    throw UsageError(arguments.recording +
                     " holds digests in place of evidence: nothing can be "
                     "tried against them");
  }
  ExplainOptions options;
  options.policy = arguments.comparison;
  options.rounds = arguments.rounds;
  options.budget = arguments.budget * 1'000'000;
  options.policy.waived = file.waived();
  options.time = &time;
  Progress progress = console.progress("explaining", "");
  options.progress = [&progress](const char* what, std::uint64_t done) {
    progress.show(done, what);
  };
  const Recording& recording = file.recording();
  const auto evidence = [&file] { return file.evidence(); };
  const Explanation explanation =
      needs_placement(recording) ? explain_unplaced(recording, evidence, *placed.search, options)
                                 : explain(recording, evidence, options);
  HintFile hints{file.identity(false).hex(), file.hints()};
  hints.hints.insert(hints.hints.end(), explanation.hints.begin(), explanation.hints.end());
  if (!arguments.output.empty() && !explanation.hints.empty()) write_hints(hints, arguments.output);
  if (arguments.json) {
    print_json(explanation, hints, console);
  } else {
    print_text(explanation, explanation.hints.empty() ? "" : arguments.output, console);
  }
  if (time.end() == TimeBudget::End::interrupted) return ExitCode::interrupted;
  const bool matches = explanation.rounds.empty() && explanation.given_up.empty();
  return matches ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_explain(CLI::App& app) {
  auto arguments = std::make_shared<ExplainArguments>();
  app.add_option("RECORDING", arguments->recording, "Recording whose replay leaves the evidence")
      ->required();
  app.add_option("-o,--output", arguments->output,
                 "File for the hints that repair it, to be reviewed and passed back");
  app.add_option("--hints", arguments->hints, "Hints that are right already");
  app.add_option("--rounds", arguments->rounds, "Divergences to explain one after the other")
      ->check(CLI::Range(1, 1000));
  app.add_option("--budget", arguments->budget,
                 "Million instructions that trials may replay for each")
      ->capture_default_str();
  app.add_option("--time", arguments->time,
                 "Seconds for everything, after which what was found is told; 0: any")
      ->capture_default_str();
  define_comparison(app, arguments->comparison);
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_explain(*arguments, console); };
}

}  // namespace

extern const Command kExplainCommand{
    "explain", "Find out why a replay leaves the evidence, and what would repair it",
    "citcat explain boot.citcat -o boot.hints.json", define_explain};

}  // namespace citcat
