#include "replay/infer/registers/guessed_replay.h"

#include <utility>

namespace citcat {

namespace {

/// Instructions in which something must agree; and between two looks at the clock.
constexpr std::uint64_t kMaxSilent = 10'000'000, kGuessLooks = kMaxSilent / 100;

}  // namespace

Divergence given_up(const TimeBudget& time) {
  Divergence d;
  d.reason = "the search for the registers was given up: " + time.text();
  return d;
}

RecoveryProgress no_progress(const TimeBudget& time) {
  RecoveryProgress nothing;
  nothing.stopped = given_up(time);
  return nothing;
}

GuessedReplay::GuessedReplay(const Recording& recording, const EvidenceSource& evidence,
                             BusOrderCheck& check, const Options& options)
    : check_(check), time_(options.time), next_look_(kMaxSilent) {
  Listeners listeners(options.compares ? &check : nullptr);
  for (Observer* const observer : options.observers) listeners.add(*observer);
  ReplayOptions replay;
  replay.evidence = evidence;
  replay.to = options.to;
  replay.progress_interval = kGuessLooks;
  replay.progress = [this](Position now) { return goes_on(now); };
  replayer_ = std::make_unique<Replayer>(recording, listeners, std::move(replay));
}

bool GuessedReplay::goes_on(Position now) {
  if (is_spent(time_)) return false;
  if (now.instruction < next_look_) return true;
  next_look_ = now.instruction + kMaxSilent;
  return check_.agreed() != std::exchange(agreed_before_, check_.agreed());
}

void GuessedReplay::define_memory(std::uint32_t bytes) {
  Memory& memory = machine().memory();
  for (std::uint32_t page = 0; page < bytes / kPageSize; ++page) {
    memory.ensure_mapped(page);
    memory.lend(page);
  }
}

RecoveryProgress GuessedReplay::run() {
  const ReplayReport report = replayer_->run();
  if (has_ended(time_)) return no_progress(*time_);
  RecoveryProgress progress;
  progress.agreed = check_.agreed();
  progress.instructions = report.instructions;
  progress.difference = check_.difference();
  if (report.end == ReplayReport::End::diverged) progress.stopped = report.divergence;
  return progress;
}

}  // namespace citcat
