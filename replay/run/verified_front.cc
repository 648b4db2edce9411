#include "replay/run/verified_front.h"

#include <algorithm>
#include <string>
#include <utility>

#include "replay/verify/verifier.h"

namespace citcat {

VerifiedFront::VerifiedFront(const RecordingFile& file, Options options)
    : file_(file), options_(std::move(options)) {
  begin(true);
}

void VerifiedFront::begin(bool plain) {
  SessionOptions session;
  session.policy = options_.policy;
  session.plain_first = plain;
  session.progress = options_.progress;
  session.pause = [this](Position now) { return paused_ = options_.pause(now); };
  session_.reset();
  session_.emplace(file_, nullptr, std::move(session));
  report_ = {};
  ended_ = false;
  options_.passed(session_->replayer());
}

void VerifiedFront::advance(Position to) {
  if (run_to(to)) return;
  const bool plain = session_->verifier() != nullptr && session_->verifier()->plain();
  if (!report_.divergence || !plain) return;
  // Once more, instruction by instruction: only that comparison has the last word.
  options_.over_again();
  begin(false);
  run_to(to);
}

/// False where the run ends before `to`, or is paused there.
bool VerifiedFront::run_to(Position to) {
  paused_ = false;
  while (!ended_ && position() < to) {
    const std::uint64_t next = (position().instruction / options_.every + 1) * options_.every;
    const Position stop = std::min(to, Position{next, 0});
    report_ = session_->run_to(stop);
    if (report_.end == ReplayReport::End::diverged) {
      ended_ = true;
    } else if (position() < stop && paused_) {
      return false;
    } else if (position() < stop) {
      end();
    } else if (position().instruction == next) {
      options_.passed(session_->replayer());
    }
  }
  return position() >= to;
}

void VerifiedFront::end() {
  ended_ = true;
  report_ = session_->end(std::move(report_));
  options_.passed(session_->replayer());
  if (report_.divergence) return;
  if (const auto differs_before = session_->differs_before()) {
    diverge({*differs_before, 0}, "the replay is not the one that the archive keeps digests of");
  } else if (session_->verifier() != nullptr) {
    const std::uint64_t different = session_->compare_final(nullptr).different;
    if (different == 0) return;
    diverge(position(), "memory at the end differs from what the bus shows in " +
                            std::to_string(different) + " bytes");
  }
}

void VerifiedFront::diverge(Position at, std::string reason) {
  report_.end = ReplayReport::End::diverged;
  report_.divergence = Divergence{};
  report_.divergence->position = at;
  report_.divergence->reason = std::move(reason);
}

}  // namespace citcat
