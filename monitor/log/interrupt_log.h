#pragma once
// Interrupts, exceptions and resets. The plugin interface does not report them; QEMU's own log does
// (-d int,cpu_reset), with the whole state before the delivery; in real mode it contains only the
// vector, and no NMI. QEMU writes it from the processor's thread, so at any callback of the monitor
// the log holds everything that has happened and nothing more.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "monitor/log/logged_state.h"

namespace citcat::monitor {

/// A delivery that QEMU began.
struct LoggedEvent {
  unsigned vector = 0;
  unsigned processor = 0;  ///< of a reset: its number
  std::uint32_t error_code = 0;
  std::uint32_t processors_bits = 0;  ///< of the error code, which the emulator leaves out
  bool software = false;              ///< INT n, INT3, INTO
  bool hardware = false;              ///< through the interrupt controller
  bool real_mode = false;             ///< delivered in real mode: the log has only the vector
  unsigned cpl = 0;
  std::uint64_t pc = 0;   ///< linear address of the instruction that was next
  std::uint64_t cr2 = 0;  ///< of a page fault
  LoggedState before;     ///< the event; of a reset too

  bool nmi() const { return vector == 2 && !software; }
  /// Comes between two instructions, or two iterations of a REP, and not from one.
  bool interrupts() const { return hardware || nmi(); }
};

/// What a line of the log completed. smi: the state is the one before it; resumed: that which RSM
/// has loaded. shutdown: a fault in the delivery of a double fault, whose event has only the
/// vector; a reset follows.
enum class LogItem { nothing, event, smi, resumed, shutdown, reset };

/// Follows the log file as it grows. Whoever made the file may take away what lies well before its
/// end.
class InterruptLog {
 public:
  /// The file is made sparse, so that this much of it can be mapped ahead.
  static constexpr std::size_t kWindow = std::size_t{64} << 30;

  InterruptLog() = default;
  /// The share that one of several processors has of `all`: events it was given, then new ones.
  explicit InterruptLog(InterruptLog& all) : all_(&all) {}
  ~InterruptLog();
  InterruptLog(const InterruptLog&) = delete;
  InterruptLog& operator=(const InterruptLog&) = delete;

  /// Maps the file that QEMU logs to (-D), which exists already. `window`: a multiple of 2 MiB.
  bool open(const std::string& path, std::size_t window = kWindow);
  /// Is there anything new? One load.
  bool pending() const {
    if (all_ != nullptr) return !given_.empty() || all_->pending();
    return text_ != nullptr && text_[at_] != 0;
  }
  /// Something that was read from the log of all, and is this processor's.
  void give(LogItem item, const LoggedEvent& event) { given_.emplace_back(item, event); }
  /// Reads on until something is complete or the log ends.
  LogItem next(LoggedEvent& event);
  /// Everything written so far is of no interest, and may be gone.
  void skip();
  /// It cannot be followed any further: what happens from now on is not seen.
  bool failed() const { return all_ != nullptr ? all_->failed() : failed_; }

 private:
  LogItem take(std::string_view line, LoggedEvent& event);
  LogItem begin_state(LogItem what, LoggedEvent& event);
  bool take_announced(LoggedEvent& event);
  bool move_to(std::size_t offset);

  static constexpr std::size_t kLongestLine = 4096;
  /// The window moves on where less than this is left of it.
  static constexpr std::size_t kMargin = std::size_t{1} << 20;

  InterruptLog* all_ = nullptr;
  std::deque<std::pair<LogItem, LoggedEvent>> given_;
  int file_ = -1;
  bool failed_ = false;
  std::size_t window_ = 0;
  std::size_t begin_ = 0;  ///< of the window, in the file
  const char* text_ = nullptr;
  std::size_t at_ = 0;  ///< in the window
  /// An event has been named. In protected mode its dump is next.
  bool announced_ = false;
  bool servicing_ = false;  ///< it comes from the interrupt controller
  unsigned vector_ = 0;
  bool inside_ = false;  ///< in the dump of `current_`
  LogItem dump_of_ = LogItem::event;
  LoggedEvent current_;
};

}  // namespace citcat::monitor
