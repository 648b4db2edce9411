#include "replay/run/replay_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/log.h"
#include "replay/session/run_end.h"
#include "replay/x86/disassembler.h"

namespace citcat {

namespace {

const Logger logger("session");

}  // namespace

ReplaySession::ReplaySession(const RecordingFile& file, Observer* observer, SessionOptions options)
    : file_(file),
      observer_(observer),
      options_(std::move(options)),
      digests_(file, options_.check && !options_.start && !options_.verified) {
  if (options_.start || options_.verified || file.meta().evidence != EvidenceMode::full) options_.check = false;
  options_.to = digests_.stop(options_.to);
  // An observer that cannot be told anew must not be told of a run that may be given up.
  const bool can_start_over = observer == nullptr || options_.start_over;
  const bool plain = options_.plain_first && can_start_over && options_.cache == nullptr &&
                     options_.path == ExecutionPath::blocks;
  if (logger.at(LogLevel::info)) {
    const char* const compared = options_.check ? (plain ? "evidence, plainly first" : "evidence")
                                 : digests_.needed() ? "digests"
                                                     : "nothing";
    logger.write(fmt::format("replay from instruction {}, compared with {}",
                             options_.start ? options_.start->instruction : 0, compared));
  }
  set_up(plain);
}

void ReplaySession::add_comparison(bool plain, Listeners& listeners) {
  const Recording& recording = file_.recording();
  VerifierOptions verifier_options;
  verifier_options.policy = options_.policy;
  verifier_options.policy.waived = file_.waived();
  // What is corrected on the way is compared store by store.
  verifier_options.plain = plain && recording.adoptions.empty();
  std::unique_ptr<EvidenceReader> evidence;
  if (options_.rewindable) {
    verifier_options.plain = verifier_options.final_memory = false;
    auto reader = std::make_unique<RewindableEvidence>([this] { return file_.evidence(); });
    evidence_ = reader.get();
    evidence_->hold();
    evidence = std::move(reader);
  } else {
    evidence = file_.evidence();
  }
  verifier_ = std::make_unique<Verifier>(recording, std::move(evidence), verifier_options);
  listeners.add(*verifier_);
  if (options_.cache == nullptr) return;
  cache_ = std::make_unique<CacheCheck>(recording, file_.evidence(), *options_.cache);
  listeners.add(*cache_);
}

/// Puts a replay together that stands at its beginning. `plain`: as in VerifierOptions.
void ReplaySession::set_up(bool plain) {
  const Recording& recording = file_.recording();
  replayer_.reset();
  Listeners listeners;
  if (options_.check) {
    add_comparison(plain, listeners);
  } else if (options_.judge != nullptr) {
    listeners.add(*options_.judge);
  }
  if (options_.start) {
    adoptions_ = options_.checkpoints->adoptions_from(*options_.start);
  } else if (options_.verified) {
    adoptions_ = std::make_unique<Adoptions>(options_.verified->adoptions, Position{});
  } else if (!recording.adoptions.empty()) {
    if (options_.policy.strict) {
      throw UsageError("--strict: this recording keeps results that were taken over from the bus");
    }
    adoptions_ = std::make_unique<Adoptions>(recording.adoptions, Position{});
  } else if (options_.rewindable && !options_.check) {
    adoptions_ = std::make_unique<Adoptions>(std::vector<Adoption>{}, Position{});
  }
  if (adoptions_) listeners.add(*adoptions_);
  if (observer_ != nullptr) listeners.add(*observer_);
  if (digests_.needed()) listeners.add(digests_.observer());
  ReplayOptions replay;
  replay.to = options_.to;
  replay.path = options_.path;
  replay.end = end_ = end_within_repeat();
  if (file_.meta().evidence == EvidenceMode::full) {
    replay.evidence = [this] { return file_.evidence(); };
  }
  if (options_.progress) {
    replay.progress = [this](Position now) {
      options_.progress(now);
      return true;
    };
  }
  replayer_ = std::make_unique<Replayer>(recording, listeners, std::move(replay));
  if (cache_) replayer_->machine().set_walk_policy(cache_->descriptor().walks);
  if (options_.walks) replayer_->machine().set_walk_policy(*options_.walks);
  if (options_.start) options_.checkpoints->restore(*options_.start, *replayer_, &loaded_);
  passed_ = options_.start;
}

/// Where the run ended, if that has to be told to the replay.
std::optional<Position> ReplaySession::end_within_repeat() const {
  const std::optional<Position> end =
      options_.start      ? std::optional(options_.start->end)
      : options_.verified ? std::optional(options_.verified->end)
                          : file_.recording().end;
  return end && ends_within_repeat(*end, options_.to) ? end : std::nullopt;
}

void ReplaySession::go_to(const Checkpoints::Start& start, std::uint64_t to) {
  const bool same_run = options_.start->series == start.series;
  options_.start = start;
  options_.to = to;
  if (!same_run || end_within_repeat() != end_) {
    set_up(false);
    return;
  }
  if (adoptions_) adoptions_->go_to(Position{start.instruction, 0});
  options_.checkpoints->restore(start, *replayer_, &loaded_);
  passed_ = start;
}

void ReplaySession::take_over(std::vector<Adoption> adoptions) {
  CITCAT_ASSERT(adoptions_ && !options_.start);
  adoptions_->set(std::move(adoptions));
  adoptions_->go_to(position());
}

std::uint64_t ReplaySession::to() const {
  if (options_.start) return last_stop(options_.start->end, options_.to);
  return options_.verified ? last_stop(options_.verified->end, options_.to) : options_.to;
}

ReplaySession::Checkpoint ReplaySession::checkpoint() const {
  CITCAT_ASSERT(options_.rewindable);
  Checkpoint c{replayer_->checkpoint(), std::nullopt, 0, passed_};
  if (!verifier_) return c;
  c.verifier = verifier_->checkpoint();
  c.evidence = evidence_->position();
  return c;
}

void ReplaySession::restore(const Checkpoint& c) {
  if (c.verifier) {
    evidence_->seek(c.evidence);
    verifier_->restore(*c.verifier);
  }
  replayer_->restore(c.replayer);
  if (adoptions_) adoptions_->go_to(c.replayer.machine.position);
  passed_ = c.passed;
}

ReplayReport ReplaySession::run_to(Position to) {
  to = std::min(to, Position{this->to(), 0});
  if (!passed_) return replayer_->run_to(to);
  for (auto next = options_.checkpoints->after(*passed_);
       next && next->instruction <= to.instruction; next = options_.checkpoints->after(*passed_)) {
    ReplayReport report = replayer_->run_to(next->instruction);
    if (report.end == ReplayReport::End::diverged) return report;
    if (!options_.checkpoints->agrees(*next, *replayer_)) {
      report.end = ReplayReport::End::diverged;
      report.divergence = Divergence{};
      report.divergence->position = {next->instruction, 0};
      report.divergence->reason =
          fmt::format("the replay from the checkpoint at {} is not the one that was checked",
                      options_.start->instruction);
      return report;
    }
    passed_ = next;
    if (logger.at(LogLevel::debug)) {
      logger.write(fmt::format("the checkpoint at instruction {} agrees", next->instruction));
    }
  }
  return replayer_->run_to(to);
}

ReplayReport ReplaySession::run() {
  if (options_.start || options_.verified) return run_to(to());
  ReplayReport report = end(replayer_->run());
  const bool careful = report.end == ReplayReport::End::diverged && verifier_ && verifier_->plain();
  if (careful && report.divergence && logger.at(LogLevel::debug)) {
    const Divergence& d = *report.divergence;
    logger.write(fmt::format("instruction {}: {}; expected {}, found {}", d.position.instruction,
                             d.reason, d.expected, d.found));
  }
  return careful ? run_carefully() : report;
}

/// Once more from the beginning, instruction by instruction.
ReplayReport ReplaySession::run_carefully() {
  if (logger.at(LogLevel::info))
    logger.write("once more from the beginning, instruction by instruction");
  if (observer_ != nullptr) observer_ = options_.start_over();
  set_up(false);
  return end(replayer_->run());
}

ReplayReport ReplaySession::end(ReplayReport report) {
  if (cache_) cache_->finish();
  return verifier_ ? verifier_->finish(std::move(report)) : report;
}

FinalMemory ReplaySession::compare_final(const MemoryImage* captured) {
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

std::string ReplaySession::first_model_specific() const {
  const Machine& machine = replayer_->machine();
  const auto& first = machine.first_model_specific();
  if (!first) return "";
  Disassembler disassembler(0);
  return fmt::format("instruction {} at {:08x}: {}", first->position.instruction,
                     first->linear.u32(), disassembler.text(first->bytes, first->linear.u32()));
}

}  // namespace citcat
