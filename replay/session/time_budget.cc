#include "replay/session/time_budget.h"

#include <fmt/format.h>

#include <utility>

namespace citcat {

TimeBudget::TimeBudget(unsigned limit, Counts counts, std::function<bool()> interrupted,
                       std::function<Clock::time_point()> now)
    : limit_(limit),
      counts_(counts),
      interrupted_(std::move(interrupted)),
      now_(std::move(now)),
      begin_(now_()),
      since_(begin_) {}

bool TimeBudget::spent() {
  if (end_ != End::none) return true;
  const bool interrupted = interrupted_ && interrupted_();
  const Clock::time_point now = now_();
  const bool late = limit_ != 0 && now - since_ >= std::chrono::seconds(limit_);
  if (!interrupted && !late) return false;
  end_ = interrupted ? End::interrupted : End::time;
  ended_ = now;
  return true;
}

void TimeBudget::gained() {
  if (counts_ == Counts::since_gain && end_ == End::none) since_ = now_();
}

double TimeBudget::seconds() const {
  const Clock::time_point until = end_ == End::none ? now_() : ended_;
  return std::chrono::duration<double>(until - begin_).count();
}

std::string TimeBudget::text() const {
  if (end_ == End::interrupted) return fmt::format("interrupted after {:.0f} s", seconds());
  if (counts_ == Counts::since_gain) return fmt::format("no further for {} s", limit_);
  return fmt::format("not through after {} s", limit_);
}

}  // namespace citcat
