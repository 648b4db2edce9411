#pragma once
// The line to gdb: two descriptors of a socket or of pipes.

#include <string>
#include <string_view>

#include "debugger/protocol/byte_line.h"
#include "debugger/protocol/packet_reader.h"

namespace citcat::gdb {

class Connection {
 public:
  /// Descriptors stay the caller's; they may be one. SIGPIPE must be ignored.
  Connection(int in, int out) : line_(in, out) {}

  /// The next packet's data; false where gdb has gone. Acknowledges as long as that is wanted, and
  /// sends again what gdb did not understand.
  bool receive(std::string& data);
  /// Sends a packet; of no effect where gdb has gone.
  void send(std::string_view data);
  /// gdb asked to be interrupted, or has gone, since the last packet. Does not wait.
  bool is_interrupted();
  /// Packets are no longer acknowledged, from the next one on.
  void stop_acknowledging() { acknowledges_ = false; }
  bool gone() const { return line_.gone(); }
  /// What broke the line, where it is not that gdb went; else empty.
  const std::string& failure() const { return line_.failure(); }

 private:
  bool read_more();

  ByteLine line_;
  PacketReader reader_;
  std::string last_;
  std::string waiting_;  ///< a packet that came while is_interrupted() looked
  bool has_begun_ = false;
  bool acknowledges_ = true, interrupt_ = false, has_waiting_ = false;
};

}  // namespace citcat::gdb
