#pragma once
// The time that a search may take, and why it was cut short.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace citcat {

class TimeBudget {
 public:
  using Clock = std::chrono::steady_clock;
  enum class End : std::uint8_t { none, time, interrupted };
  /// What the limit applies to: the time since the budget was made, or since the search last made
  /// progress.
  enum class Counts : std::uint8_t { all, since_gain };

  /// `limit` is in seconds; 0: none. `interrupted` says whether somebody asks the search to end
  /// before that; may be empty.
  explicit TimeBudget(unsigned limit, Counts counts = Counts::all,
                      std::function<bool()> interrupted = {},
                      std::function<Clock::time_point()> now = Clock::now);

  /// Whether the time is used up; asks the clock. Once true it stays true.
  bool spent();
  /// The search has made progress.
  void gained();
  End end() const { return end_; }
  unsigned limit() const { return limit_; }
  /// Seconds from when the budget was made until now, or until it was spent.
  double seconds() const;
  /// "no further for 120 s", "interrupted after 12 s".
  std::string text() const;

 private:
  const unsigned limit_;
  const Counts counts_;
  const std::function<bool()> interrupted_;
  const std::function<Clock::time_point()> now_;
  const Clock::time_point begin_;
  Clock::time_point since_;  ///< what the limit counts from
  Clock::time_point ended_;
  End end_ = End::none;
};

/// The same for a search that may have no budget.
inline bool is_spent(TimeBudget* time) { return time != nullptr && time->spent(); }
/// Whether an earlier call has found it spent.
inline bool has_ended(const TimeBudget* time) {
  return time != nullptr && time->end() != TimeBudget::End::none;
}

}  // namespace citcat
