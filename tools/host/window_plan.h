#pragma once
// --window: the stretches of a run that the tools see.
//
//   every N [EVENT] for M [EVENT]        stretches of M that begin at every N-th
//   from EVENT [until EVENT] [for N [EVENT]]
//                                        stretches that EVENT begins and the other, or N more, ends
//   random COUNT of M seed S             so many stretches of M instructions, chosen by S
//   FROM-TO, FROM-TO, ...                instructions, TO not included; without TO all that follow
//   file:FILE                            the same, in lines; # begins a comment
//   none                                 nothing of the run
//   control:PIPE [to FILE]               as another process says (window_control.h); FILE gets what
//   it
//                                        decided, to be read by file: (PIPE.windows)
//   ..., warm W                          models follow W instructions before each stretch,
//   uncounted; only
//                                        where instructions alone decide
//
// EVENT: window_event.h; instructions without a word. Numbers may end in k, M or G: thousands,
// millions, thousands of millions.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/host/window_control.h"
#include "tools/host/window_event.h"
#include "tools/host/window_words.h"

namespace citcat::tools {

class WindowPlan {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// `end`: instructions of the run, for random stretches. `names` must outlive the plan. Throws
  /// UsageError for anything else. A file: is to have been read (with_file()).
  static WindowPlan parse(const std::string& text, std::uint64_t end, const NameSource& names);

  /// --sample: the same of instructions alone, not decided from outside. Throws UsageError.
  static WindowPlan parse_sample(const std::string& text, std::uint64_t end,
                                 const NameSource& names);

  /// `text` with the windows of a file: in its place, which is read here and once. Throws
  /// FormatError for what it has wrong, and IoError.
  static std::string with_file(const std::string& text);

  /// Another process decides, from the beginning of the run on.
  bool is_controlled() const { return control_ != nullptr; }
  /// Sets the function that receives lines of the other process that were refused.
  void on_refusal(std::function<void(const std::string&)> warn) const {
    if (control_) control_->on_refusal(std::move(warn));
  }
  /// The run has ended: what another process decided is written down.
  void finish() const {
    if (control_) control_->finish();
  }
  /// Positions alone decide. Else the windows are opened and closed by a WindowCounter.
  bool by_position() const { return !counts_; }
  /// By position: whether the instruction is reported, ...
  bool has(std::uint64_t instruction) const;
  /// ... or is not, but is near enough before a window for models to follow it, ...
  bool warms(std::uint64_t instruction) const;
  /// ... and the first one from there on for which one of these answers differs; kNone if there is
  /// none.
  std::uint64_t next_edge(std::uint64_t instruction) const;

  /// By position: which part of the instructions [from, to) is reported.
  struct Share {
    std::uint64_t windows = 0, instructions = 0;
    std::uint64_t warming = 0;  ///< instructions that models follow besides
  };
  Share share(std::uint64_t from, std::uint64_t to) const;

  /// So many events; 0: none.
  struct Count {
    WindowEvent event;
    std::uint64_t number = 0;
  };
  const Count& opens() const { return opens_; }
  /// What opens a window that is open already begins another.
  bool opens_anew() const { return opens_anew_; }
  /// Whatever of these comes first.
  const std::array<Count, 2>& closes() const { return closes_; }
  /// Some window is opened or closed by such events.
  bool counts(Counted what) const;

 private:
  static WindowPlan controlled(const std::string& text);
  void read_every(WindowWords& words, const NameSource& names);
  void read_from(WindowWords& words, const NameSource& names);
  std::uint64_t begin_behind(std::uint64_t instruction) const;
  std::uint64_t end_of(std::uint64_t instruction) const;

  std::shared_ptr<WindowControl> control_;  ///< null: nobody outside decides
  bool counts_ = false;                     ///< events decide
  bool opens_anew_ = false;                 ///< `every`
  Count opens_;                             ///< `every`, `from`: number not 0
  std::array<Count, 2> closes_;
  std::uint64_t warm_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  ///< else; in order, apart
};

/// Opens and closes windows that events are counted for.
class WindowCounter {
 public:
  explicit WindowCounter(const WindowPlan& plan) : plan_(&plan) {}
  bool is_open() const { return open_; }
  /// One more of these. True where the window was opened or closed by that.
  bool count(const Happening& h);

 private:
  const WindowPlan* plan_;
  bool open_ = false;
  std::uint64_t seen_ = 0;               ///< of what opens, since it did so last
  std::array<std::uint64_t, 2> done_{};  ///< of what closes, since the window opened
};

}  // namespace citcat::tools
