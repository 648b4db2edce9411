#pragma once
// The line to the client: two descriptors of a socket or of pipes.

#include <deque>
#include <string>

#include "debugger/dap/message_reader.h"
#include "debugger/dap/request.h"

namespace citcat::dap {

class Line {
 public:
  /// Descriptors stay the caller's; they may be one. SIGPIPE must be ignored.
  Line(int in, int out) : in_(in), out_(out) {}

  /// The next message, whole; false where the client has gone. Throws FormatError for what is none.
  bool receive(std::string& message);
  /// Numbers the message, and sends it; of no effect where the client has gone.
  void send(Json message);
  /// A message has come since the last one that is to interrupt what runs (`pause`, `disconnect`,
  /// `terminate`), or the client has gone. Does not wait; messages stay to be received.
  bool is_interrupted();
  /// What broke the line, where it is not that the client went; else empty.
  const std::string& failure() const { return failure_; }

 private:
  bool read_more();
  void lose(int error);
  /// More wait than a client has reason to send while something runs.
  static constexpr std::size_t kMostWaiting = 256;

  int in_, out_;
  MessageReader reader_;
  std::deque<std::string> waiting_;
  std::string failure_;
  bool gone_ = false;
  std::int64_t sent_ = 0;
};

}  // namespace citcat::dap
