#pragma once
// The line to gdb: two descriptors of a socket or of pipes.

#include <string>
#include <string_view>

#include "debugger/protocol/packet_reader.h"

namespace citcat::gdb {

class Connection {
 public:
  /// Descriptors stay the caller's; they may be one. SIGPIPE must be ignored.
  Connection(int in, int out) : in_(in), out_(out) {}

  /// The next packet's data; false where gdb has gone. Acknowledges as long as that is wanted, and
  /// sends again what gdb did not understand.
  bool receive(std::string& data);
  /// Sends a packet; of no effect where gdb has gone.
  void send(std::string_view data);
  /// gdb asked to be interrupted, or has gone, since the last packet. Does not wait.
  bool is_interrupted();
  /// Packets are no longer acknowledged, from the next one on.
  void stop_acknowledging() { acknowledges_ = false; }
  bool gone() const { return gone_; }
  /// What broke the line, where it is not that gdb went; else empty.
  const std::string& failure() const { return failure_; }

 private:
  bool read_more();
  /// `error`: an errno, or 0 at the end of the line.
  void lose(int error);
  void write(std::string_view bytes);

  int in_, out_;
  PacketReader reader_;
  std::string last_;
  std::string failure_;
  std::string waiting_;  ///< a packet that came while is_interrupted() looked
  bool has_begun_ = false;
  bool acknowledges_ = true, gone_ = false, interrupt_ = false, has_waiting_ = false;
};

}  // namespace citcat::gdb
