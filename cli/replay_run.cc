#include "cli/replay_run.h"

#include <fmt/format.h>

#include "formats/error.h"

namespace citcat {

namespace {
constexpr std::uint64_t kNoTransaction = ~std::uint64_t{0};
}

ReplayRun::ReplayRun(const RecordingFile& file, Sink* trace, const ReplayRunOptions& options,
                     const Console& console)
    : progress_(console.progress("replaying", "instructions",
                                 file.recording().instructions.value_or(0))) {
  const Recording& recording = file.recording();
  if (options.check) {
    VerifierOptions verifier_options;
    verifier_options.strict = options.strict;
    verifier_ = std::make_unique<Verifier>(recording, file.evidence(), verifier_options);
    sinks_.add(*verifier_);
  }
  if (trace != nullptr) sinks_.add(*trace);
  ReplayOptions replay;
  replay.to = options.to;
  if (options.check) replay.evidence = [&file] { return file.evidence(); };
  replay.progress = [this](Position now) {
    progress_.update(now.instruction);
    return true;
  };
  replayer_ = std::make_unique<Replayer>(recording, &sinks_, std::move(replay));
  if (verifier_) verifier_->attach(replayer_->machine());
}

ReplayReport ReplayRun::run() {
  ReplayReport report = replayer_->run();
  if (report.end == ReplayReport::End::complete && verifier_) {
    try {
      verifier_->finish(replayer_->machine().position());
    } catch (const ReplayStopped& stop) {
      report.end = ReplayReport::End::diverged;
      report.divergence = make_divergence(stop);
    }
  }
  return report;
}

nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence) {
  if (!divergence) return nullptr;
  const Divergence& d = *divergence;
  nlohmann::ordered_json json;
  json["position"] = d.position.instruction;
  json["iteration"] = d.position.iteration;
  json["transaction"] = nullptr;
  if (d.transaction != kNoTransaction) json["transaction"] = d.transaction;
  json["reason"] = d.reason;
  json["expected"] = d.expected;
  json["found"] = d.found;
  json["causes"] = d.causes;
  return json;
}

std::vector<std::string> divergence_lines(const Divergence& d) {
  std::string head = fmt::format("diverged at instruction {}", d.position.instruction);
  if (d.position.iteration != 0) head += fmt::format(" iteration {}", d.position.iteration);
  if (d.transaction != kNoTransaction) head += fmt::format(", transaction {}", d.transaction);
  std::vector<std::string> lines = {head + ": " + d.reason};
  if (!d.expected.empty()) lines.push_back("  expected  " + d.expected);
  if (!d.found.empty()) lines.push_back("  found     " + d.found);
  for (const std::string& cause : d.causes) lines.push_back("  perhaps   " + cause);
  return lines;
}

}  // namespace citcat
