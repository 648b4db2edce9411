#include "cli/replay_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/error.h"
#include "replay/x86/disassembler.h"

namespace citcat {

ReplayRun::ReplayRun(const RecordingFile& file, Sink* trace, const ReplayRunOptions& options,
                     const Console& console)
    : file_(file),
      trace_(trace),
      options_(options),
      progress_(console.progress("replaying", "instructions",
                                 file.recording().instructions.value_or(0))) {
  if (options.start) options_.check = false;
  set_up(options_.plain_first && options_.cache == nullptr);
}

/// Puts a replay together that stands at its beginning. `plain`: as in VerifierOptions.
void ReplayRun::set_up(bool plain) {
  const Recording& recording = file_.recording();
  replayer_.reset();
  end_.reset();
  sinks_.emplace();
  if (options_.check) {
    VerifierOptions verifier_options;
    verifier_options.policy = options_.policy;
    verifier_options.plain = plain && recording.adoptions.empty();  // see AdoptionSink
    verifier_options.policy.waived = file_.waived();
    verifier_ = std::make_unique<Verifier>(recording, file_.evidence(), verifier_options);
    sinks_->add(*verifier_);
    if (options_.cache != nullptr) {
      cache_ = std::make_unique<CacheCheck>(recording, file_.evidence(), *options_.cache);
      sinks_->add(*cache_);
    }
  }
  if (options_.start) {
    adoptions_ = options_.checkpoints->adoptions_from(*options_.start);
  } else if (!recording.adoptions.empty()) {
    if (options_.policy.strict) {
      throw UsageError("--strict: this recording keeps results that were taken over from the bus");
    }
    adoptions_ = std::make_unique<AdoptionSink>(recording.adoptions, Position{});
  }
  if (adoptions_) sinks_->add(*adoptions_);
  if (const auto end = end_within_repeat()) sinks_->add(end_.emplace(*end));
  if (trace_ != nullptr) sinks_->add(*trace_);
  ReplayOptions replay;
  replay.to = options_.to;
  if (file_.meta().evidence == EvidenceMode::full) {
    replay.evidence = [this] { return file_.evidence(); };
  }
  replay.progress = [this](Position now) {
    progress_.update(now.instruction);
    return true;
  };
  replayer_ = std::make_unique<Replayer>(recording, &*sinks_, std::move(replay));
  if (verifier_) verifier_->attach(replayer_->machine());
  if (cache_) cache_->attach(replayer_->machine());
  if (adoptions_) adoptions_->attach(replayer_->machine());
  if (options_.machine_made) options_.machine_made(replayer_->machine());
  if (options_.start) options_.checkpoints->restore(*options_.start, *replayer_, &loaded_);
}

/// Where the run ended, if that has to be told to the replay.
std::optional<Position> ReplayRun::end_within_repeat() const {
  const std::optional<Position> end =
      options_.start ? std::optional(options_.start->end) : file_.recording().end;
  return end && EndSink::needed(*end, options_.to) ? end : std::nullopt;
}

void ReplayRun::go_to(const Checkpoints::Start& start, std::uint64_t to) {
  options_.start = start;
  options_.to = to;
  const std::unique_ptr<AdoptionSink> adoptions = options_.checkpoints->adoptions_from(start);
  if ((adoptions != nullptr) != (adoptions_ != nullptr) ||
      end_within_repeat().has_value() != end_.has_value()) {
    set_up(false);  // other sinks: the machine asks them once what they want
    return;
  }
  if (adoptions_) adoptions_->go_to(Position{start.instruction, 0});
  options_.checkpoints->restore(start, *replayer_, &loaded_);
}

ReplayReport ReplayRun::run_from_checkpoint() {
  const std::uint64_t to = EndSink::stop(options_.start->end, options_.to);
  for (auto next = options_.checkpoints->after(*options_.start); next && next->instruction <= to;
       next = options_.checkpoints->after(*next)) {
    ReplayReport report = replayer_->run_to(next->instruction);
    if (report.end == ReplayReport::End::diverged) return report;
    if (options_.checkpoints->agrees(*next, *replayer_)) continue;
    report.end = ReplayReport::End::diverged;
    report.divergence = Divergence{};
    report.divergence->position = {next->instruction, 0};
    report.divergence->reason =
        fmt::format("the replay from the checkpoint at {} is not the one that was checked",
                    options_.start->instruction);
    return report;
  }
  return replayer_->run_to(to);
}

ReplayReport ReplayRun::run() {
  if (options_.start) return run_from_checkpoint();
  ReplayReport report = end(replayer_->run());
  const bool careful = report.end == ReplayReport::End::diverged && verifier_ && verifier_->plain();
  return careful ? run_carefully() : report;
}

/// Once more from the beginning, instruction by instruction.
ReplayReport ReplayRun::run_carefully() {
  if (trace_ != nullptr) trace_ = options_.start_over();
  set_up(false);
  return end(replayer_->run());
}

ReplayReport ReplayRun::end(ReplayReport report) {
  if (cache_) cache_->finish();
  return verifier_ ? verifier_->finish(std::move(report)) : report;
}

FinalMemory ReplayRun::compare_final(const MemoryImage* captured) {
  FinalMemory at_end = verifier_->compare_final(captured);
  if (at_end.different != 0 && verifier_->plain()) {
    run_carefully();
    at_end = verifier_->compare_final(captured);
  }
  if (captured == nullptr || at_end.different == 0) return at_end;
  // What the processor did within its caches after the last transaction is deterministic.
  constexpr std::uint64_t kMaxBeyond = 1'000'000;
  verifier_->go_beyond();
  FinalMemory memory = at_end;
  for (std::uint64_t i = 0; i < kMaxBeyond && replayer_->step_beyond(); ++i) {
    const Memory& now = replayer_->machine().memory();
    const bool settled =
        std::all_of(memory.differences.begin(), memory.differences.end(),
                    [&](PhysAddr a) { return now.defined_byte(a) == captured->byte(a); });
    if (!settled) continue;
    memory = verifier_->compare_final(captured);
    if (memory.different == 0) return memory;
  }
  return at_end;
}

std::string ReplayRun::first_model_specific() {
  const Machine& machine = replayer_->machine();
  const auto& first = machine.first_model_specific();
  if (!first) return "";
  Disassembler disassembler(0);
  return fmt::format("instruction {} at {:08x}: {}", first->position.instruction, first->linear,
                     disassembler.text(first->bytes, first->linear));
}

nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence) {
  if (!divergence) return nullptr;
  const Divergence& d = *divergence;
  nlohmann::ordered_json json;
  json["position"] = d.position.instruction;
  json["iteration"] = d.position.iteration;
  json["linear"] = nullptr;
  if (d.linear) json["linear"] = *d.linear;
  json["transaction"] = nullptr;
  if (d.transaction != kNoTransaction) json["transaction"] = d.transaction;
  json["reason"] = d.reason;
  json["expected"] = d.expected;
  json["found"] = d.found;
  json["causes"] = d.causes;
  return json;
}

std::vector<std::string> divergence_lines(const Divergence& d) {
  std::string head = "diverged at " + place_text(d);
  if (d.transaction != kNoTransaction) head += fmt::format(", transaction {}", d.transaction);
  std::vector<std::string> lines = {head + ": " + d.reason};
  if (!d.expected.empty()) lines.push_back("  expected  " + d.expected);
  if (!d.found.empty()) lines.push_back("  found     " + d.found);
  for (const std::string& cause : d.causes) lines.push_back("  perhaps   " + cause);
  return lines;
}

}  // namespace citcat
