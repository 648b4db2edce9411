#pragma once
// The effort and the progress of a search for the places of interrupts, and whether it may go on.

#include <cstddef>
#include <cstdint>

#include "events/recording.h"
#include "replay/session/time_budget.h"

namespace citcat {

class SearchEffort {
 public:
  /// `recording` must outlive the effort; `time` may be null.
  SearchEffort(const Recording& recording, TimeBudget* time) : recording_(recording), time_(time) {}

  /// Asks the clock. Once the time is spent it stays so.
  bool look_at_clock() {
    spent_ = spent_ || is_spent(time_);
    return spent_;
  }
  bool spent() const { return spent_; }

  void note_try() { ++tried_; }
  void add_instructions(std::uint64_t executed) { instructions_ += executed; }
  /// A run that is compared came to this instruction, with so many transactions read.
  void come_to(std::uint64_t instruction, std::uint64_t transactions);
  /// So many interrupts have places.
  void set_placed(std::size_t placed) { placed_ = placed; }
  /// After a run: where more interrupts have places than ever before, or it is much further, the
  /// time counts from now.
  void note_gain();

  std::uint64_t tried() const { return tried_; }                ///< boundaries
  std::uint64_t instructions() const { return instructions_; }  ///< executed
  std::uint64_t furthest() const { return furthest_; }          ///< instruction that was come to

  /// Whether so many instructions more may be executed before the search goes on from instruction
  /// `from`, so that all of it takes no longer than three replays.
  bool allows(std::uint64_t instructions, std::uint64_t from) const;

 private:
  std::uint64_t expected_length() const;

  const Recording& recording_;
  TimeBudget* const time_;
  bool spent_ = false;
  std::uint64_t tried_ = 0, instructions_ = 0;
  std::size_t placed_ = 0, most_placed_ = 0;
  std::uint64_t gained_at_ = 0;  ///< instruction, the last time the search got further
  std::uint64_t furthest_ = 0;
  std::uint64_t furthest_read_ = 0;  ///< transactions read by then
};

}  // namespace citcat
