#include "debugger/protocol/loopback_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "formats/io/error.h"

namespace citcat::gdb {

namespace {

[[noreturn]] void fail(std::uint16_t port, const char* what) {
  throw IoError("port " + std::to_string(port) + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

LoopbackListener::LoopbackListener(std::uint16_t port) {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail(port, "cannot make a socket");
  const int on = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  constexpr int kWaiting = 8;
  if (bind(socket_, generic, size) != 0 || listen(socket_, kWaiting) != 0 ||
      getsockname(socket_, generic, &size) != 0) {
    const int error = errno;
    close(socket_);
    errno = error;
    fail(port, "cannot listen");
  }
  port_ = ntohs(address.sin_port);
}

LoopbackListener::~LoopbackListener() { close(socket_); }

int LoopbackListener::accept() {
  // A signal ends poll(), which is never restarted.
  pollfd waiting{socket_, POLLIN, 0};
  if (poll(&waiting, 1, -1) < 0) {
    if (errno == EINTR) return -1;
    fail(port_, "cannot wait");
  }
  const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) {
    // A client that has gone again.
    if (errno == EINTR || errno == ECONNABORTED) return -1;
    fail(port_, "cannot accept");
  }
  // Answers are small, and gdb waits for each.
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return client;
}

}  // namespace citcat::gdb
