#include "debugger/protocol/connection.h"

#include <utility>

namespace citcat::gdb {

/// Waits for bytes; false at the end of the line.
bool Connection::read_more() {
  const std::string_view read = line_.read();
  if (line_.gone()) return false;
  const std::string stranger = std::exchange(has_begun_, true) ? std::string() : why_not_gdb(read);
  if (!stranger.empty()) {
    line_.give_up(stranger);
    return false;
  }
  reader_.add(read);
  return true;
}

bool Connection::receive(std::string& data) {
  interrupt_ = false;
  if (std::exchange(has_waiting_, false)) {
    data = std::move(waiting_);
    return true;
  }
  for (;;) {
    for (Incoming incoming; reader_.take(incoming);) {
      switch (incoming.kind) {
        case Incoming::Kind::packet:
          if (acknowledges_) line_.write("+");
          data = std::move(incoming.data);
          return true;
        case Incoming::Kind::damaged:
          if (acknowledges_) line_.write("-");
          break;
        case Incoming::Kind::nak:
          line_.write(last_);
          break;
        case Incoming::Kind::ack:
        case Incoming::Kind::interrupt:  // nothing runs that it could interrupt
          break;
      }
    }
    if (line_.gone() || !read_more()) return false;
  }
}

bool Connection::is_interrupted() {
  // Ctrl-C may have come together with the packet that it is to interrupt.
  bool more = true;
  while (more) {
    for (Incoming incoming; !has_waiting_ && reader_.take(incoming);) {
      interrupt_ |= incoming.kind == Incoming::Kind::interrupt;
      if (incoming.kind != Incoming::Kind::packet) continue;
      // Nobody sends one before the answer to the last; it is answered after that.
      if (acknowledges_) line_.write("+");
      waiting_ = std::move(incoming.data);
      has_waiting_ = true;
    }
    more = !line_.gone() && !interrupt_ && !has_waiting_ && line_.has_input();
    if (more) read_more();
  }
  return interrupt_ || line_.gone();
}

void Connection::send(std::string_view data) {
  last_ = packet_of(data);
  line_.write(last_);
}

}  // namespace citcat::gdb
