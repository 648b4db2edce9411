#pragma once
// The line to a client, byte by byte: two descriptors of a socket or of pipes.

#include <string>
#include <string_view>

namespace citcat {

class ByteLine {
 public:
  /// Descriptors stay the caller's; they may be one. SIGPIPE must be ignored.
  ByteLine(int in, int out) : in_(in), out_(out) {}

  /// Waits for bytes; empty where the client has gone. Valid until the next call.
  std::string_view read();
  /// Whether read() would not wait.
  bool has_input() const;
  /// Sends all of them; of no effect where the client has gone.
  void write(std::string_view bytes);

  bool gone() const { return gone_; }
  /// Nothing more is read or written, because of `why`.
  void give_up(std::string why);
  /// The reason why the line broke; empty where the client went by itself.
  const std::string& failure() const { return failure_; }

 private:
  /// `error`: an errno, or 0 at the end of the line.
  void lose(int error);

  int in_, out_;
  std::string bytes_, failure_;
  bool gone_ = false;
};

}  // namespace citcat
