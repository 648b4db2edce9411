#include "debugger/protocol/connection.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace citcat::gdb {

/// Waits for bytes; false at the end of the line.
bool Connection::read_more() {
  std::array<char, 4096> bytes;
  ssize_t n = 0;
  do {
    n = ::read(in_, bytes.data(), bytes.size());
  } while (n < 0 && errno == EINTR);
  if (n <= 0) {
    lose(n < 0 ? errno : 0);
    return false;
  }
  const std::string_view read{bytes.data(), static_cast<std::size_t>(n)};
  if (!std::exchange(has_begun_, true)) failure_ = why_not_gdb(read);
  if (!failure_.empty()) {
    gone_ = true;
    return false;
  }
  reader_.add(read);
  return true;
}

void Connection::lose(int error) {
  gone_ = true;
  if (error != 0 && error != EPIPE && error != ECONNRESET) failure_ = std::strerror(error);
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
          if (acknowledges_) write("+");
          data = std::move(incoming.data);
          return true;
        case Incoming::Kind::damaged:
          if (acknowledges_) write("-");
          break;
        case Incoming::Kind::nak:
          write(last_);
          break;
        case Incoming::Kind::ack:
        case Incoming::Kind::interrupt:  // nothing runs that it could interrupt
          break;
      }
    }
    if (gone_ || !read_more()) return false;
  }
}

bool Connection::is_interrupted() {
  pollfd line{in_, POLLIN, 0};
  // Ctrl-C may have come together with the packet that it is to interrupt.
  bool more = true;
  while (more) {
    for (Incoming incoming; !has_waiting_ && reader_.take(incoming);) {
      interrupt_ |= incoming.kind == Incoming::Kind::interrupt;
      if (incoming.kind != Incoming::Kind::packet) continue;
      // Nobody sends one before the answer to the last; it is answered behind that.
      if (acknowledges_) write("+");
      waiting_ = std::move(incoming.data);
      has_waiting_ = true;
    }
    more = !gone_ && !interrupt_ && !has_waiting_ && poll(&line, 1, 0) > 0;
    if (more) read_more();
  }
  return interrupt_ || gone_;
}

void Connection::send(std::string_view data) {
  last_ = packet_of(data);
  write(last_);
}

void Connection::write(std::string_view bytes) {
  while (!bytes.empty() && !gone_) {
    const ssize_t n = ::write(out_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      lose(n < 0 ? errno : 0);
    } else {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
}

}  // namespace citcat::gdb
