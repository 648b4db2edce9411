// citcat explain: why a replay diverges from its evidence, and what would repair it.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/advice/line_advice.h"
#include "cli/command.h"
#include "cli/comparison_arguments.h"
#include "cli/divergence_report.h"
#include "cli/interrupt.h"
#include "cli/machine/machine_explanation_report.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/placed_recording.h"
#include "cli/report/explanation_json.h"
#include "cli/staged_output.h"
#include "events/capture_time.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/text/one_line.h"
#include "replay/diagnose/explanation.h"
#include "replay/diagnose/processors/machine_explanation.h"

namespace citcat {
namespace {

struct ExplainArguments {
  std::string recording, hints, output;
  ProcessorArgument processor;
  unsigned rounds = 8;
  std::uint64_t budget = 400;
  unsigned time = 120;
  bool json = false;
  ComparisonPolicy comparison;
};

std::string line_text(const ContextLine& line) {
  std::string text = fmt::format("{:>12}  {:08x}  {:<32}", line.position.instruction,
                                 line.linear.value, line.text);
  if (!line.accesses.empty()) text += "  ; " + line.accesses;
  return text + "\n";
}

void print_round(const ExplainedDivergence& round, double clock_hz, const Console& console) {
  for (const std::string& line : divergence_lines(round.divergence, clock_hz))
    console.print_line(line);
  if (round.context.empty()) return;
  console.print("\nthe instructions before it\n");
  for (const ContextLine& line : round.context) console.print(line_text(line));
  if (!round.lineage.empty()) console.print("\nwhere its values came from\n");
  for (const LineageLine& lineage : round.lineage) {
    console.print_line("  " + lineage.source);
    for (const ContextLine& line : lineage.path) console.print(line_text(line));
  }
  console.print(fmt::format("\ncauses: {} tried, {} instructions replayed to try them\n",
                            round.tried, round.instructions));
  if (round.causes.empty() || round.causes.front().suspected)
    console.print("  none of them makes the replay go on\n");
  int rank = 0;
  std::set<std::string> told;
  for (const TriedCause& tried : round.causes) {
    // Two ways to the same cause are one cause.
    if (!told.insert(tried.cause.text).second) continue;
    const std::string reach =
        tried.suspected ? "not tried: nothing in the recording could be changed for it"
        : tried.repairs ? "everything then agrees, to the end"
                        : fmt::format("agrees for {} instructions more", tried.agrees_until);
    console.print(fmt::format("{:>3}. {:<18} {}\n{:24}{}{}\n", ++rank, cause_name(tried.cause.kind),
                              one_line(tried.cause.text), "", reach,
                              tried.tied ? "; as likely as the first" : ""));
    if (tried.equivalent_values != 0) {
      console.print_line(fmt::format("{:24}equivalent: {} of {} other values tried give the same",
                                     "", tried.equivalent_values, tried.other_values));
    }
  }
  for (const std::string& what : round.not_tried) console.print_line("not tried: " + what);
}

/// What to do now. `output`: the file of hints that was written, if one was.
void print_next_step(const Explanation& explanation, const std::string& recording,
                     const std::string& output, const Console& console) {
  if (!output.empty()) {
    console.print_line("review " + output + ", then see whether it is right: citcat verify " +
                       recording + " --hints " + output);
  } else if (!explanation.hints.empty()) {
    console.print_line("to keep the repair: citcat explain " + recording + " -o hints.json");
  } else if (!explanation.rounds.empty()) {
    console.print_line(
        "to see what is wrong with the capture itself: citcat lint CAPTURE; to look at the "
        "machine there: citcat debug " +
        recording + " --at divergence");
  }
}

void print_text(const Explanation& explanation, const ExplainArguments& arguments,
                const std::string& output, const std::vector<std::string>& advice, double clock_hz,
                const Console& console) {
  if (explanation.rounds.empty() && !explanation.given_up.empty()) {
    console.print_line(fmt::format("{}: the replay agrees so far, up to instruction {}",
                                   explanation.given_up, explanation.report.instructions));
    return;
  }
  if (explanation.rounds.empty()) {
    console.print_line(
        fmt::format("match: {} instructions, nothing to explain", explanation.report.instructions));
    return;
  }
  for (std::size_t i = 0; i < explanation.rounds.size(); ++i) {
    if (i != 0) console.print("\nwith the first of these causes repaired:\n");
    print_round(explanation.rounds[i], clock_hz, console);
  }
  if (!explanation.given_up.empty()) {
    console.print("\n" + explanation.given_up + ": this is what was found by then\n");
  }
  console.print(explanation.repaired ? "\nwith the first causes repaired the whole run agrees\n"
                                     : "\nthe run is not repaired\n");
  for (const std::string& text : advice) console.print_line("in all of the capture " + text);
  print_next_step(explanation, arguments.recording, output, console);
}

void write_hints(const HintFile& hints, const std::string& path) {
  AtomicFile file(path);
  const std::string text = hints_text(hints);
  file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file.commit();
}

/// What was found of one recording.
struct ExplainedRecording {
  Explanation explanation;
  HintFile hints;
  double clock_hz = 0;
  std::vector<std::string> advice;
};

ExplainedRecording explain_recording(const ExplainArguments& arguments, TimeBudget& time,
                                     const Console& console) {
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
  options.policy.told_changes = file.told_changes();
  options.time = &time;
  Progress progress = console.progress("explaining", "");
  options.progress = [&progress](const char* what, std::uint64_t done) {
    progress.show(done, what);
  };
  const Recording& recording = file.recording();
  const auto evidence = [&file] { return file.evidence(); };
  ExplainedRecording found;
  found.explanation = needs_placement(recording)
                          ? explain_unplaced(recording, evidence, *placed.search, options)
                          : explain(recording, evidence, options);
  const Explanation& explanation = found.explanation;
  found.hints = {file.identity(false).hex(), file.hints()};
  found.hints.hints.insert(found.hints.hints.end(), explanation.hints.begin(),
                           explanation.hints.end());
  found.clock_hz = clock_rate(recording.provenance);
  if (!explanation.rounds.empty()) found.advice = line_advice(file);
  return found;
}

void print_found(const ExplainedRecording& found, const ExplainArguments& arguments,
                 const Console& console) {
  print_text(found.explanation, arguments, found.explanation.hints.empty() ? "" : arguments.output,
             found.advice, found.clock_hz, console);
}

/// The bus contradicts itself at most by an interrupt that was taken while another one waited: that
/// one may be what a processor's own cause adds.
bool needs_no_more(const CrossCheckResult& bus) {
  return bus.clean() ||
         (bus.contradictions == 1 && bus.first && bus.first->t.op == BusOp::interrupt_acknowledge);
}

/// Each processor whose replay diverges from the evidence, by itself. `repaired`: with its own
/// causes each of them agrees.
nlohmann::ordered_json explain_each(const MachineFile& machine, const MachineOutcome& outcome,
                                    ExplainArguments arguments, TimeBudget& time,
                                    const Console& console, bool& repaired) {
  nlohmann::ordered_json each = nlohmann::ordered_json::array();
  repaired = outcome.diverged() != 0;
  for (std::size_t p = 0; p < machine.processors(); ++p) {
    nlohmann::ordered_json its{{"processor", p}};
    if (p < outcome.replays.size() && outcome.replays[p].divergence) {
      arguments.recording = machine.name(p);
      const ExplainedRecording found = explain_recording(arguments, time, console);
      repaired = repaired && found.explanation.repaired;
      if (arguments.json) {
        its.update(explanation_json(found.explanation, found.hints, found.clock_hz));
      } else {
        console.print(fmt::format("\nprocessor {} by itself\n", p));
        print_found(found, arguments, console);
      }
    }
    each.push_back(std::move(its));
  }
  return each;
}

ExitCode explain_processors(const MachineFile& machine, const ExplainArguments& arguments,
                            const Console& console) {
  if (!arguments.output.empty() || !arguments.hints.empty())
    throw UsageError("-o and --hints need --processor P, because the recording has several");
  TimeBudget time(arguments.time, TimeBudget::Counts::all, interrupt_requested);
  MachineExplainOptions options;
  options.policy = arguments.comparison;
  options.time = &time;
  options.folder = std::filesystem::temp_directory_path().string();
  Progress progress = console.progress("explaining", "");
  options.progress = [&progress](std::size_t tried) { progress.show(tried, "causes"); };
  const MachineExplanation explanation = explain_machine(machine, options);
  const bool match = explanation.outcome.agrees();
  nlohmann::ordered_json json;
  json["verdict"] = match ? "match" : "diverged";
  json["repaired"] = explanation.repaired();
  bool each_repaired = false;
  json["machine"] = machine_explanation_json(explanation);
  json["processors"] = nlohmann::ordered_json::array();
  if (!arguments.json) {
    if (match) {
      console.print_line("match: nothing to explain");
    } else {
      print_machine_explanation(explanation, console);
    }
  }
  if (!match && !explanation.repaired()) {
    json["processors"] =
        explain_each(machine, explanation.outcome, arguments, time, console, each_repaired);
    if (each_repaired && needs_no_more(explanation.outcome.bus)) json["repaired"] = true;
  }
  if (arguments.json) console.print_json(json);
  if (time.end() == TimeBudget::End::interrupted) return ExitCode::interrupted;
  return match ? ExitCode::ok : ExitCode::answer_is_no;
}

ExitCode run_explain(ExplainArguments arguments, const Console& console) {
  arguments.recording = arguments.processor.name(arguments.recording);
  if (is_standard_output(arguments.output)) {
    throw UsageError(
        "-o: expected a file for the hints; the explanation goes to the standard "
        "output, with --json the hints among it");
  }
  if (const auto machine = find_machine(arguments.recording))
    return explain_processors(*machine, arguments, console);
  TimeBudget time(arguments.time, TimeBudget::Counts::all, interrupt_requested);
  const ExplainedRecording found = explain_recording(arguments, time, console);
  const Explanation& explanation = found.explanation;
  if (!arguments.output.empty() && !explanation.hints.empty())
    write_hints(found.hints, arguments.output);
  if (arguments.json) {
    console.print_json(explanation_json(explanation, found.hints, found.clock_hz));
  } else {
    print_found(found, arguments, console);
  }
  if (time.end() == TimeBudget::End::interrupted) return ExitCode::interrupted;
  const bool matches = explanation.rounds.empty() && explanation.given_up.empty();
  return matches ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_explain(const CommandParser& parser) {
  auto arguments = std::make_shared<ExplainArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording whose replay does not match")
      .required();
  arguments->processor.define(parser);
  parser
      .add_option("-o,--output", arguments->output,
                  "File for the hints that repair the recording, for you to review and pass back "
                  "with --hints")
      .type_name(kFileType);
  parser.add_option("--hints", arguments->hints, "Hints that you have accepted already")
      .type_name(kFileType);
  parser.add_option("--rounds", arguments->rounds, "Divergences to explain one after the other")
      .in_range(1, 1000);
  parser
      .add_option("--budget", arguments->budget,
                  "Millions of instructions that trials may replay for each divergence")
      .show_default();
  parser
      .add_option("--time", arguments->time,
                  "Seconds after which to stop and print what was found; 0: no limit")
      .show_default();
  define_comparison(parser, arguments->comparison);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_explain(*arguments, console); };
}

}  // namespace

extern const Command kExplainCommand{
    "explain", "Find out why a replay does not match, and what would repair it",
    "citcat explain boot.citcat -o boot.hints.json", define_explain};

}  // namespace citcat
