#include "replay/run/replay_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "events/archive/lost_lines.h"
#include "events/completed_instructions.h"
#include "formats/io/error.h"
#include "formats/io/log.h"
#include "replay/run/digest_check.h"
#include "replay/run/model_specific_text.h"
#include "replay/run/plain_places.h"
#include "replay/run/session_checkpoint.h"
#include "replay/session/adoptions.h"
#include "replay/session/checkpoints.h"
#include "replay/session/replayer.h"
#include "replay/session/rewindable_evidence.h"
#include "replay/session/run_end.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/doubts.h"
#include "replay/verify/verifier.h"

namespace citcat {

namespace {

const Logger session_logger("session");
constexpr std::uint64_t kNoStop = ~std::uint64_t{0};

/// Where nothing is compared, and none of it was before, nothing says how far an instruction came
/// that has only begun: it is left out.
bool leaves_out_begun(const SessionOptions& options, const Recording& recording) {
  return !options.check && !options.start && options.verified == nullptr &&
         options.judge == nullptr && begins_another(recording);
}

/// The run ended in a shutdown, which the bus may show: the instruction behind the completed ones
/// is made, and does not complete.
bool ends_in_shutdown(const Recording& recording, Position end) {
  if (end.iteration != 0 || !recording.instructions) return false;
  const std::uint64_t counted = *recording.instructions;
  return recording.end ? recording.end == end && counted == end.instruction
                       : counted == end.instruction + 1;
}

}  // namespace

/// What a session is made of; what is told comes before who tells.
struct ReplaySession::Parts {
  Parts(const RecordingFile& file, bool check) : digests(file, check) {}

  std::unique_ptr<Checkpoints> checkpoints;  ///< where SessionOptions has none
  DigestCheck digests;
  Doubts doubts;                           ///< of the plain comparisons so far
  RewindableEvidence* evidence = nullptr;  ///< the verifier's, where it can be taken back
  std::unique_ptr<Verifier> verifier;
  std::unique_ptr<CacheCheck> cache;
  std::unique_ptr<Adoptions> adoptions;
  std::optional<Checkpoints::Loaded> loaded;  ///< of SessionOptions::start
  std::unique_ptr<Replayer> replayer;
  PlainPlaces places;   ///< of the plain comparison
  bool paused = false;  ///< SessionOptions::pause ended what ran last
};

ReplaySession::ReplaySession(const RecordingFile& file, Observer* observer, SessionOptions options)
    : file_(file), observer_(observer), options_(std::move(options)) {
  std::unique_ptr<Checkpoints> checkpoints;
  if ((options_.start || options_.from != 0) && options_.checkpoints == nullptr) {
    checkpoints = std::make_unique<Checkpoints>(file);
    options_.checkpoints = checkpoints.get();
  }
  if (!options_.start && options_.from != 0) {
    options_.start =
        options_.checkpoints->start_for({options_.from, options_.to}, options_.policy.strict);
  }
  const bool compared_before = options_.start || options_.verified != nullptr;
  parts_ = std::make_unique<Parts>(file, options_.check && !compared_before);
  parts_->checkpoints = std::move(checkpoints);
  if (compared_before || file.meta().evidence != EvidenceMode::full) options_.check = false;
  options_.to = parts_->digests.stop(options_.to);
  // An observer that cannot be known anew must not be told of a run that may be given up.
  const bool can_start_over = observer == nullptr || options_.start_over;
  const bool plain =
      options_.plain_first && can_start_over && options_.path == ExecutionPath::blocks;
  if (session_logger.at(LogLevel::info)) {
    const char* const compared = options_.check ? (plain ? "evidence, plainly first" : "evidence")
                                 : parts_->digests.needed() ? "digests"
                                                            : "nothing";
    session_logger.write(fmt::format("replay from instruction {}, compared with {}",
                                     options_.start ? options_.start->instruction : 0, compared));
  }
  set_up(plain);
}

ReplaySession::~ReplaySession() = default;

VerifierOptions ReplaySession::verifier_options(bool plain) const {
  VerifierOptions options;
  options.policy = options_.policy;
  options.policy.waived = file_.waived();
  options.policy.told_changes = file_.told_changes();
  options.times = options_.times;
  // What is corrected on the way is compared store by store.
  options.plain = plain && file_.recording().adoptions.empty();
  options.ahead = !options_.rewindable;
  return options;
}

void ReplaySession::add_comparison(bool plain, Listeners& listeners) {
  const Recording& recording = file_.recording();
  VerifierOptions verifier_options = this->verifier_options(plain);
  std::unique_ptr<EvidenceReader> evidence;
  if (options_.rewindable) {
    verifier_options.plain = verifier_options.final_memory = false;
    auto reader = std::make_unique<RewindableEvidence>([this] { return file_.evidence(); });
    parts_->evidence = reader.get();
    parts_->evidence->hold();
    evidence = std::move(reader);
  } else {
    evidence = file_.evidence();
  }
  parts_->verifier = std::make_unique<Verifier>(recording, std::move(evidence), verifier_options);
  listeners.add(*parts_->verifier);
  if (options_.cache == nullptr) return;
  parts_->cache = std::make_unique<CacheCheck>(recording, file_.evidence(), *options_.cache,
                                               lost_lines_of(file_));
  listeners.add(*parts_->cache);
}

/// Puts a replay together that is at its beginning. `plain`: as in VerifierOptions.
void ReplaySession::set_up(bool plain) {
  const Recording& recording = file_.recording();
  parts_->replayer.reset();
  Listeners listeners;
  if (options_.check) {
    add_comparison(plain, listeners);
  } else if (options_.judge != nullptr) {
    listeners.add(*options_.judge);
  }
  if (options_.start) {
    parts_->adoptions = options_.checkpoints->adoptions_from(*options_.start);
  } else if (options_.verified != nullptr) {
    parts_->adoptions = std::make_unique<Adoptions>(options_.verified->adoptions, Position{});
  } else if (!recording.adoptions.empty()) {
    if (options_.policy.strict) {
      throw UsageError("--strict: this recording contains results that were adopted from the bus");
    }
    parts_->adoptions = std::make_unique<Adoptions>(recording.adoptions, Position{});
  } else if (options_.rewindable && !options_.check) {
    parts_->adoptions = std::make_unique<Adoptions>(std::vector<Adoption>{}, Position{});
  }
  if (parts_->adoptions) listeners.add(*parts_->adoptions);
  if (observer_ != nullptr) listeners.add(*observer_);
  if (parts_->digests.needed()) listeners.add(parts_->digests.observer());
  end_ = end_within_repeat();
  ReplayOptions replay = replay_options();
  if (options_.progress || options_.pause) {
    replay.progress = [this](Position now) {
      if (options_.progress) options_.progress(now);
      parts_->paused = options_.pause && options_.pause(now);
      return !parts_->paused;
    };
  }
  parts_->places.clear();
  parts_->replayer = std::make_unique<Replayer>(recording, listeners, std::move(replay));
  set_walk_policy(parts_->replayer->machine());
  if (options_.start)
    options_.checkpoints->restore(*options_.start, *parts_->replayer, &parts_->loaded);
  passed_ = options_.start;
}

ReplayOptions ReplaySession::replay_options() const {
  const Recording& recording = file_.recording();
  ReplayOptions replay;
  replay.to = to();
  replay.within = options_.within;
  replay.path = options_.path;
  replay.last_halt_completes = options_.check || options_.judge != nullptr ||
                               recording.instructions.has_value() ||
                               recording.totals.transactions == 0;
  replay.end = end_;
  if (file_.meta().evidence == EvidenceMode::full) {
    replay.evidence = [this] { return file_.evidence(); };
  }
  return replay;
}

void ReplaySession::set_walk_policy(Machine& machine) const {
  if (parts_->cache) machine.set_walk_policy(parts_->cache->descriptor().walks);
  if (options_.walks) machine.set_walk_policy(*options_.walks);
}

/// Where the run ended, if that has to be told to the replay.
std::optional<Position> ReplaySession::end_within_repeat() const {
  const std::optional<Position> end = options_.start      ? std::optional(options_.start->end)
                                      : options_.verified ? std::optional(options_.verified->end)
                                                          : file_.recording().end;
  if (!end) return std::nullopt;
  return ends_within_repeat(*end, options_.to) || ends_within_begun(*end) ? end : std::nullopt;
}

/// A compared run of a capture without instruction counts ends within the instruction that the last
/// evidence belongs to. Observers were notified of its accesses; so are those of later runs.
bool ReplaySession::ends_within_begun(Position end) const {
  const bool compared_before = options_.start || options_.verified != nullptr;
  return compared_before && options_.judge == nullptr && !options_.rewindable &&
         !file_.recording().instructions && end.iteration == 0 && options_.to > end.instruction;
}

void ReplaySession::go_to(const Checkpoints::Start& start, std::uint64_t to) {
  const bool same_run = options_.start->series == start.series;
  options_.start = start;
  options_.to = to;
  if (!same_run || end_within_repeat() != end_) {
    set_up(false);
    return;
  }
  if (parts_->adoptions) parts_->adoptions->go_to(Position{start.instruction, 0});
  options_.checkpoints->restore(start, *parts_->replayer, &parts_->loaded);
  passed_ = start;
}

void ReplaySession::take_over(std::vector<Adoption> adoptions) {
  CITCAT_ASSERT(parts_->adoptions && !options_.start);
  parts_->adoptions->set(std::move(adoptions));
  parts_->adoptions->go_to(position());
}

std::uint64_t ReplaySession::to() const {
  if (leaves_out_begun(options_, file_.recording()))
    return std::min(options_.to, file_.recording().end->instruction);
  const bool compared_before = options_.start || options_.verified != nullptr;
  if (!compared_before) return options_.to;
  const Position end = options_.start ? options_.start->end : options_.verified->end;
  if (ends_in_shutdown(file_.recording(), end)) return std::min(options_.to, end.instruction + 1);
  return ends_within_begun(end) ? end.instruction + 1 : last_stop(end, options_.to);
}

ReplaySession::Checkpoint ReplaySession::checkpoint() const {
  CITCAT_ASSERT(options_.rewindable);
  Checkpoint c{parts_->replayer->checkpoint(), std::nullopt, 0, passed_};
  if (!parts_->verifier) return c;
  c.verifier = parts_->verifier->checkpoint();
  c.evidence = parts_->evidence->position();
  return c;
}

void ReplaySession::restore(const Checkpoint& c) {
  if (c.verifier) {
    parts_->evidence->seek(c.evidence);
    parts_->verifier->restore(*c.verifier);
  }
  parts_->replayer->restore(c.replayer);
  if (parts_->adoptions) parts_->adoptions->go_to(c.replayer.machine.position);
  passed_ = c.passed;
}

ReplayReport ReplaySession::step() { return parts_->replayer->step(); }

ReplayReport ReplaySession::run_to(Position to) {
  to = std::min({to, Position{this->to(), 0}, options_.within.value_or(to)});
  parts_->paused = false;
  if (!passed_) return parts_->replayer->run_to(to);
  for (auto next = options_.checkpoints->after(*passed_);
       next && next->instruction <= to.instruction; next = options_.checkpoints->after(*passed_)) {
    ReplayReport report = parts_->replayer->run_to(next->instruction);
    if (report.end == ReplayReport::End::diverged || parts_->paused) return report;
    if (!options_.checkpoints->agrees(*next, *parts_->replayer)) {
      report.end = ReplayReport::End::diverged;
      report.divergence = Divergence{};
      report.divergence->position = {next->instruction, 0};
      report.divergence->reason =
          fmt::format("the replay from the checkpoint at {} is not the one that was checked",
                      options_.start->instruction);
      return report;
    }
    passed_ = next;
    if (session_logger.at(LogLevel::debug)) {
      session_logger.write(
          fmt::format("the checkpoint at instruction {} agrees", next->instruction));
    }
  }
  return parts_->replayer->run_to(to);
}

/// Up to the end or a divergence, with checkpoints where they are wanted.
ReplayReport ReplaySession::run_through() {
  // What was compared before ends where it did then.
  const bool passes = options_.start || options_.verified != nullptr;
  const bool has_places = parts_->verifier != nullptr && parts_->verifier->has_places();
  if (taker_ == nullptr && !has_places) return end(passes ? run_to(to()) : parts_->replayer->run());
  for (;;) {
    const std::uint64_t checkpoint = taker_ != nullptr ? taker_->next() : kNoStop;
    const std::uint64_t place = has_places ? parts_->places.next() : kNoStop;
    const ReplayReport report = run_to(std::min({checkpoint, place, to()}));
    const bool goes_on = report.end != ReplayReport::End::diverged;
    if (!goes_on || report.instructions < std::min(checkpoint, place)) return end(report);
    if (report.instructions >= place) parts_->places.take(*parts_->replayer, *parts_->verifier);
    if (report.instructions >= checkpoint) taker_->take(*parts_->replayer);
  }
}

ReplayReport ReplaySession::run(CheckpointTaker& taker) {
  taker_ = &taker;
  return run();
}

ReplayReport ReplaySession::run() {
  // A plain comparison may put off what it cannot explain.
  Verifier* const verifier = parts_->verifier.get();
  const bool plain = verifier != nullptr && verifier->plain();
  if (plain) verifier->put_off(parts_->doubts);
  ReplayReport report = run_through();
  bool agrees = report.end != ReplayReport::End::diverged;
  while (agrees && parts_->doubts.remain()) agrees = look_at_doubts();
  if (agrees || !plain) return report;
  if (report.divergence && session_logger.at(LogLevel::debug)) {
    const Divergence& d = *report.divergence;
    session_logger.write(fmt::format("instruction {}: {}; expected {}, found {}",
                                     d.position.instruction, d.reason, d.expected, d.found));
  }
  return run_carefully();
}

/// Replays the stretches before the doubts once more, and looks at each of their instructions. True
/// where what remains is explained or needs a longer stretch. What was taken over at a doubt was
/// taken over when it was put off: the run behind it is right if the doubt is explained.
bool ReplaySession::look_at_doubts() {
  // To pass over evidence takes a part of the time of replaying.
  constexpr std::uint64_t kPassedOver = 8;
  const std::vector<Doubts::Stretch>& stretches = parts_->doubts.look_again();
  for (std::size_t i = 0; i < stretches.size();) {
    const PlainPlace* const place = parts_->places.before(stretches[i].first);
    std::uint64_t end = stretches[i++].end;
    const auto goes_on = [&](const Doubts::Stretch& next) {
      const PlainPlace* const later = parts_->places.before(next.first);
      const std::uint64_t begin = later != nullptr ? later->instruction() : 0;
      return begin < end || next.first - end < begin / kPassedOver;
    };
    while (i < stretches.size() && goes_on(stretches[i])) end = stretches[i++].end;
    if (!agrees_closely(place, end)) return false;
  }
  return true;
}

/// Compares from `place` on, plainly but for the stretches before doubts.
bool ReplaySession::agrees_closely(const PlainPlace* place, std::uint64_t end) {
  if (session_logger.at(LogLevel::info)) {
    session_logger.write(fmt::format(
        "once more from instruction {} to {}, one by one before lines that show other flags",
        place != nullptr ? place->instruction() : 0, end));
  }
  VerifierOptions verifier_options = this->verifier_options(true);
  if (place != nullptr) verifier_options.begin = &place->comparison;
  Verifier verifier(file_.recording(), file_.evidence(), verifier_options);
  verifier.put_off(parts_->doubts);
  ReplayOptions replay = replay_options();
  bool paused = false;
  if (options_.pause) {
    replay.progress = [&](Position now) { return !(paused = options_.pause(now)); };
  }
  Replayer replayer(file_.recording(), Listeners(&verifier), std::move(replay));
  set_walk_policy(replayer.machine());
  if (place != nullptr) replayer.restore(place->replayer);
  ReplayReport report = replayer.run_to(std::min(end, to()));
  if (report.instructions < end) report = verifier.finish(std::move(report));
  return report.end != ReplayReport::End::diverged && !paused;
}

/// Once more from the beginning, instruction by instruction.
ReplayReport ReplaySession::run_carefully() {
  if (session_logger.at(LogLevel::info))
    session_logger.write("once more from the beginning, instruction by instruction");
  if (observer_ != nullptr) observer_ = options_.start_over();
  if (taker_ != nullptr) taker_->start_over();
  set_up(false);
  return run_through();
}

ReplayReport ReplaySession::end(ReplayReport report) {
  if (parts_->cache) parts_->cache->finish();
  const Recording& recording = file_.recording();
  const bool is_whole = leaves_out_begun(options_, recording) &&
                        report.end == ReplayReport::End::stopped &&
                        report.instructions == recording.end->instruction;
  if (is_whole) report.end = ReplayReport::End::complete;
  // The run ended within this instruction: evidence that it lacks would come after the end.
  const bool lacks_what_follows = report.end == ReplayReport::End::diverged && end_ &&
                                  ends_within_begun(*end_) &&
                                  report.instructions == end_->instruction;
  if (lacks_what_follows) {
    report.end = ReplayReport::End::complete;
    report.divergence.reset();
  }
  return parts_->verifier ? parts_->verifier->finish(std::move(report)) : report;
}

FinalMemory ReplaySession::compare_final(const MemoryImage* captured) {
  FinalMemory at_end = parts_->verifier->compare_final(captured);
  if (at_end.different != 0 && parts_->verifier->plain()) {
    run_carefully();
    at_end = parts_->verifier->compare_final(captured);
  }
  if (captured == nullptr || at_end.different == 0) return at_end;
  // What the processor did within its caches after the last transaction is deterministic.
  constexpr std::uint64_t kMaxBeyond = 1'000'000;
  parts_->verifier->go_beyond();
  FinalMemory memory = at_end;
  for (std::uint64_t i = 0; i < kMaxBeyond && parts_->replayer->step_beyond(); ++i) {
    const Memory& now = parts_->replayer->machine().memory();
    const bool settled =
        std::all_of(memory.differences.begin(), memory.differences.end(),
                    [&](PhysAddr a) { return now.defined_byte(a) == captured->byte(a); });
    if (!settled) continue;
    memory = parts_->verifier->compare_final(captured);
    if (memory.different == 0) return memory;
  }
  return at_end;
}

const std::vector<Adoption>& ReplaySession::adoptions() const {
  return parts_->verifier ? parts_->verifier->adoptions() : file_.recording().adoptions;
}

std::optional<std::uint64_t> ReplaySession::differs_before() {
  return parts_->digests.compare(position().instruction);
}

// ---------------------------------------------------------------------------------------------
// What it can be asked

const Replayer& ReplaySession::replayer() const { return *parts_->replayer; }
const Machine& ReplaySession::machine() const { return parts_->replayer->machine(); }
Memory& ReplaySession::memory_to_change() { return parts_->replayer->machine().memory(); }
const CacheCheck* ReplaySession::cache() const { return parts_->cache.get(); }
const Verifier* ReplaySession::verifier() const { return parts_->verifier.get(); }
const DigestCheck& ReplaySession::digests() const { return parts_->digests; }
Position ReplaySession::position() const { return machine().position(); }
CpuState ReplaySession::registers() const { return machine().save(); }

std::optional<std::uint8_t> ReplaySession::byte(PhysAddr address) const {
  return machine().memory().defined_byte(address);
}

std::uint64_t ReplaySession::model_specific_results() const {
  return machine().model_specific_results();
}

std::string ReplaySession::first_model_specific() const {
  return first_model_specific_text(machine());
}

}  // namespace citcat
