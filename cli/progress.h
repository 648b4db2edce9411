#pragma once
// The line on the terminal that says how far a long command has got.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace citcat {

/// How far a long command is.
struct ProgressState {
  std::string_view label;   ///< the work: "replaying"
  std::string_view unit;    ///< what is counted: "instructions"
  std::string_view what;    ///< what is done now, where that is worth telling
  std::uint64_t done = 0;   ///< units
  std::uint64_t total = 0;  ///< units; 0: not known
  double seconds = 0;       ///< since the beginning
};

/// `state` as a line of at most `columns`: the rate is left out first, then the count, and what is
/// still too long is cut.
std::string progress_line(const ProgressState& state, unsigned columns);

/// One line on the terminal that says how far a long command is; nothing when it is not to be seen.
/// The line goes to stderr and is wiped by the destructor, so results and errors start clean.
class Progress {
 public:
  /// `label` names the work ("replaying"), `unit` what is counted ("instructions"); `total` is 0
  /// when it is not known beforehand.
  Progress(bool visible, std::string label, std::string unit, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` units are done so far. Draws at most a few times a second. Throws Interrupted after
  /// Ctrl-C, visible or not.
  void update(std::uint64_t done);
  /// The same without asking for Ctrl-C; what is done now is named instead of the label where
  /// `what` is not empty, and a count of 0 is left out.
  void show(std::uint64_t done, std::string_view what = {});

 private:
  using Clock = std::chrono::steady_clock;

  void draw(std::uint64_t done, std::string_view what, Clock::time_point now);

  const bool visible_;
  const std::string label_;
  const std::string unit_;
  const std::uint64_t total_;
  const Clock::time_point start_;
  Clock::time_point next_draw_;
  bool drawn_ = false;
};

}  // namespace citcat
