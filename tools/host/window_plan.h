#pragma once
// --window: the stretches of a run that the tools are told of.
//
//   every N [EVENT] for M [EVENT]        stretches of M that begin at every N-th
//   random COUNT of M seed S             so many stretches of M instructions, chosen by S
//   FROM-TO, FROM-TO, ...                instructions, TO not included; without TO all that follow
//   file:FILE                            the same, in lines; # begins a comment
//   none                                 nothing of the run
//   control:PIPE [to FILE]               as another process says (window_control.h); FILE gets what it
//                                        decided, to be read by file: (PIPE.windows)
//
// EVENT: instructions (without a word), branches, calls, returns, interrupts, exceptions, syscalls,
// switches. Numbers may end in k, M or G: thousands, millions, thousands of millions.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/host/window_control.h"

namespace citcat::tools {

/// What windows are counted in.
enum class Counted : std::uint8_t {
  instructions,
  branches,  ///< conditional ones
  calls,
  returns,
  interrupts,  ///< from outside, NMI, SMI
  exceptions,
  syscalls,  ///< INT 80h, SYSENTER
  switches,  ///< loads of CR3
};

class WindowPlan {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// `end`: instructions of the run, for random stretches. Throws UsageError where it is none of these.
  /// A file: is to have been read (with_file()).
  static WindowPlan parse(const std::string& text, std::uint64_t end);

  /// `text` with the windows of a file: in its place, which is read here and once. Throws FormatError for
  /// what it has wrong, and IoError.
  static std::string with_file(const std::string& text);

  /// Another process decides, from the beginning of the run on.
  bool is_controlled() const { return control_ != nullptr; }
  /// The run has ended: what another process decided is written down.
  void finish() const {
    if (control_) control_->finish();
  }
  /// Positions alone decide. Else the windows are opened and closed by a WindowCounter.
  bool by_position() const { return opens_.what == Counted::instructions &&
                                    closes_.what == Counted::instructions; }
  /// By position: whether the instruction is told, ...
  bool has(std::uint64_t instruction) const;
  /// ... the first one from there on of which the answer is another; kNone where there is none.
  std::uint64_t next_edge(std::uint64_t instruction) const;

  struct Count {
    Counted what = Counted::instructions;
    std::uint64_t number = 0;
  };
  const Count& opens() const { return opens_; }
  const Count& closes() const { return closes_; }

 private:
  static WindowPlan controlled(const std::string& text);

  std::shared_ptr<WindowControl> control_;  ///< null: nobody outside decides
  Count opens_, closes_;                                         ///< `every`: number not 0
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  ///< else; in order, apart
};

/// Opens and closes windows that events are counted for.
class WindowCounter {
 public:
  explicit WindowCounter(const WindowPlan& plan) : plan_(plan) {}
  bool is_open() const { return open_; }
  /// `n` more of these happened. True where the window was opened or closed by that.
  bool count(Counted what, std::uint64_t n = 1) {
    const bool before = open_;
    if (open_ && what == plan_.closes().what) {
      done_ += n;
      if (done_ >= plan_.closes().number) open_ = false;
    }
    if (what == plan_.opens().what) {
      seen_ += n;
      if (seen_ >= plan_.opens().number) {
        seen_ %= plan_.opens().number;
        open_ = true;
        done_ = 0;
      }
    }
    return open_ != before;
  }
  bool counts(Counted what) const {
    return what == plan_.opens().what || what == plan_.closes().what;
  }

 private:
  const WindowPlan& plan_;
  bool open_ = false;
  std::uint64_t seen_ = 0, done_ = 0;
};

}  // namespace citcat::tools
