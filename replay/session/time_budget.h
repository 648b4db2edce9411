#pragma once
// The time that a search may take, and why it ended before it was through.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace citcat {

class TimeBudget {
 public:
  using Clock = std::chrono::steady_clock;
  enum class End : std::uint8_t { none, time, interrupted };
  /// What the limit counts: all the time since the budget was made, or since the search last got
  /// further.
  enum class Counts : std::uint8_t { all, since_gain };

  /// `limit` is in seconds; 0: none. `interrupted` says whether somebody asks the search to end
  /// before that; may be empty.
  explicit TimeBudget(unsigned limit, Counts counts = Counts::all,
                      std::function<bool()> interrupted = {},
                      std::function<Clock::time_point()> now = Clock::now);

  /// Asks the clock. Once true it stays so.
  bool spent();
  /// The search got further.
  void gained();
  End end() const { return end_; }
  unsigned limit() const { return limit_; }
  /// Seconds since it was made; where it ended, up to then.
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

/// The same for a search that may have none.
inline bool is_spent(TimeBudget* time) { return time != nullptr && time->spent(); }
/// It was found spent before.
inline bool has_ended(const TimeBudget* time) {
  return time != nullptr && time->end() != TimeBudget::End::none;
}

}  // namespace citcat
