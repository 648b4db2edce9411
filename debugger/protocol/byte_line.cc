#include "debugger/protocol/byte_line.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace citcat {

std::string_view ByteLine::read() {
  constexpr std::size_t kMost = 4096;
  bytes_.resize(kMost);
  ssize_t n = 0;
  do {
    n = ::read(in_, bytes_.data(), bytes_.size());
  } while (n < 0 && errno == EINTR);
  if (n <= 0) lose(n < 0 ? errno : 0);
  return std::string_view(bytes_).substr(0, n < 0 ? 0 : static_cast<std::size_t>(n));
}

bool ByteLine::has_input() const {
  pollfd line{in_, POLLIN, 0};
  return poll(&line, 1, 0) > 0;
}

void ByteLine::write(std::string_view bytes) {
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

void ByteLine::lose(int error) {
  gone_ = true;
  if (error != 0 && error != EPIPE && error != ECONNRESET) failure_ = std::strerror(error);
}

void ByteLine::give_up(std::string why) {
  gone_ = true;
  failure_ = std::move(why);
}

}  // namespace citcat
