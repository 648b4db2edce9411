#pragma once
// --window control:PIPE: another process opens and closes windows while the run goes on (calvin's
// mode of shared memory). It writes lines:
//
//   open [N]     from instruction N on; without one, or where N is after, from where the run is
//   close [N]    instruction N is not told any more
//
// A machine that checked the pipe at every block would be slow, and the places of the checks would
// depend on how the run is cut into blocks. So stretches of the run are decided one after the
// other, each before it runs, with the lines that have come by then. The decisions can be written
// down as a list of windows like any other, which repeats the run exactly.
//
// Any other line is refused with a message, and has no effect.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/atomic_file.h"
#include "formats/io/file_descriptor.h"

namespace citcat::tools {

class WindowControl {
 public:
  /// `pipe`: what is read, a named pipe or anything else. `decisions`: the file that is written.
  /// Neither is touched before the first question.
  WindowControl(std::string pipe, std::string decisions)
      : pipe_(std::move(pipe)), decisions_(std::move(decisions)) {}

  /// Sets the function that receives why a line was refused; without it, nothing is called.
  void on_refusal(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }

  /// Whether the instruction is reported. The first call waits until a line has come or no writer
  /// is left; later calls never wait. Call it in the order of the run; a decision does not change.
  /// Throws IoError.
  bool has(std::uint64_t instruction);
  /// The first instruction from there on with another answer, or one that is not decided yet.
  std::uint64_t next_edge(std::uint64_t instruction);
  /// The run has ended: the file gets its windows, as lines FROM-TO; FROM- where one is open.
  void finish();

 private:
  struct Command {
    bool opens = false;
    std::optional<std::uint64_t> at;
  };
  void decide(std::uint64_t instruction);
  void apply(const Command& command, std::uint64_t at);
  void open();
  void wait_for_line();
  void read_lines();
  bool read_piece();
  void end_line();
  void take_line(const std::string& line, std::uint64_t offset);
  void refuse(std::uint64_t offset, const std::string& message);

  std::string pipe_, decisions_;
  FileDescriptor input_;
  std::unique_ptr<AtomicFile> output_;
  std::function<void(const std::string&)> warn_;
  unsigned refusals_ = 0;
  std::string line_;          ///< read, without its end so far; of a long one its beginning
  std::uint64_t offset_ = 0;  ///< of what is read next
  std::uint64_t line_begin_ = 0;
  std::deque<Command> queue_;         ///< read, and not decided yet
  std::vector<std::uint64_t> edges_;  ///< in order: opened, closed, opened, ...
  std::uint64_t horizon_ = 0;         ///< before it everything is decided
};

}  // namespace citcat::tools
