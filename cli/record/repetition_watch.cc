#include "cli/record/repetition_watch.h"

namespace citcat {

RepetitionWatch::~RepetitionWatch() {
  leaves_ = true;
  monitor_.end();
  if (thread_.joinable()) thread_.join();
}

void RepetitionWatch::begin() {
  monitor_.begin();
  thread_ = std::thread([this] { watch(); });
}

/// Only answers count: an emulator that is busy gives none for a while.
void RepetitionWatch::watch() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{100};
  constexpr int kLooksBetween = 20, kLeastAnswers = 10;
  Clock::time_point since = Clock::now();
  int answers = 0;
  for (int look = 1; !leaves_; ++look) {
    std::this_thread::sleep_for(kLook);
    if (look % kLooksBetween != 0 || leaves_) continue;
    const auto now = monitor_.instructions();
    if (!now) return;
    if (*now != instructions_ || answers == 0) {
      instructions_ = *now;
      since = Clock::now();
      answers = 0;
    }
    stopped_ = ++answers >= kLeastAnswers && Clock::now() - since >= kPatience;
  }
}

std::optional<std::uint64_t> RepetitionWatch::stopped_at() const {
  if (!stopped_) return std::nullopt;
  return instructions_.load();
}

}  // namespace citcat
