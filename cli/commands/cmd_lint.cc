// citcat lint: what looks wrong with the probes of a capture.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "capture/inspect/lint.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"

namespace citcat {
namespace {

struct LintArguments {
  std::vector<std::string> captures;
  CaptureArguments capture;
  bool json = false;
};

void print_json(const LintReport& report, bool sound, const Console& console) {
  nlohmann::ordered_json json;
  json["verdict"] = sound ? "sound" : "suspect";
  json["format"] = report.info.format;
  json["cpu"] = cpu_model_name(report.info.cpu);
  json["transactions"] = report.transactions;
  json["findings"] = nlohmann::ordered_json::array();
  for (const LintFinding& finding : report.findings) {
    nlohmann::ordered_json entry;
    entry["check"] = finding.check;
    entry["confidence"] = confidence_name(finding.confidence);
    entry["count"] = finding.count;
    entry["transaction"] = finding.transaction;
    entry["clock"] = finding.clock;
    entry["text"] = finding.text;
    json["findings"].push_back(entry);
  }
  json["warnings"] = report.info.warnings;
  console.print_json(json);
}

void print_text(const LintReport& report, bool sound, const Console& console) {
  for (const LintFinding& finding : report.findings)
    console.print_line(fmt::format("{:<9} {:<24} {}x, first at transaction {}, clock {}: {}",
                                   confidence_name(finding.confidence), finding.check,
                                   finding.count, finding.transaction, finding.clock,
                                   finding.text));
  for (const std::string& warning : report.info.warnings)
    console.print_line(fmt::format("{:<9} {}", "note", warning));
  console.print(fmt::format("{} transactions, ", report.transactions));
  console.print_verdict(sound, sound ? "no sign of a faulty capture" : "suspect", "");
}

ExitCode run_lint(const LintArguments& arguments, const Console& console) {
  const CaptureOptions options = arguments.capture.options();
  Progress progress = console.progress("reading", "transactions");
  const LintReport report = lint_capture(
      arguments.captures, options, [&progress](std::uint64_t done) { progress.update(done); });
  const bool sound = std::none_of(
      report.findings.begin(), report.findings.end(),
      [](const LintFinding& finding) { return finding.confidence != FindingConfidence::possible; });
  if (arguments.json) {
    print_json(report, sound, console);
  } else {
    print_text(report, sound, console);
  }
  return sound ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_lint(const CommandParser& parser) {
  auto arguments = std::make_shared<LintArguments>();
  parser
      .add_option("CAPTURE", arguments->captures,
                  "Capture files, compressed or not (.gz .bz2 .xz .zst)")
      .required();
  arguments->capture.define(parser);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_lint(*arguments, console); };
}

}  // namespace

extern const Command kLintCommand{"lint", "Look for signs that a capture is faulty",
                                  "citcat lint boot.sr --json", define_lint};

}  // namespace citcat
