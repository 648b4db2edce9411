#pragma once
// The line to the client: two descriptors of a socket or of pipes.

#include <deque>
#include <string>

#include "debugger/dap/message_reader.h"
#include "debugger/dap/request.h"
#include "debugger/protocol/byte_line.h"

namespace citcat::dap {

class Line {
 public:
  /// Descriptors stay the caller's; they may be one. SIGPIPE must be ignored.
  Line(int in, int out) : line_(in, out) {}

  /// The next message, whole; false where the client has gone. Throws FormatError if it is not one.
  bool receive(std::string& message);
  /// Numbers the message, and sends it; of no effect where the client has gone.
  void send(Json message);
  /// A message has come since the last one that is to interrupt what runs (`pause`, `disconnect`,
  /// `terminate`), or the client has gone. Does not wait; messages stay to be received.
  bool is_interrupted();
  /// ByteLine::failure().
  const std::string& failure() const { return line_.failure(); }

 private:
  bool read_more();
  /// More wait than a client has reason to send while something runs.
  static constexpr std::size_t kMostWaiting = 256;

  ByteLine line_;
  MessageReader reader_;
  std::deque<std::string> waiting_;
  std::int64_t sent_ = 0;
};

}  // namespace citcat::dap
