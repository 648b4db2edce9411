#include "debugger/protocol/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "debugger/protocol/packet_text.h"
#include "formats/io/error.h"

namespace citcat::gdb {

namespace {

constexpr int kWaiting = 8;
constexpr int kListenerFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

[[noreturn]] void fail(const std::string& where, const char* what, int error) {
  throw IoError(where + ": " + what + ": " + std::strerror(error));
}

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw UsageError(fmt::format("{}: the path of a socket has 1 to {} bytes", path,
                                 sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Removes a socket that a program left which is gone.
void make_room_for(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) throw UsageError(path + ": exists and is not a socket");
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const bool refused = connect(probe, generic, sizeof address) != 0 && errno == ECONNREFUSED;
  close(probe);
  if (!refused) throw UsageError(path + ": another program listens there");
  unlink(path.c_str());
}

// ---- who is there
// ----------------------------------------------------------------

/// An address and a port as /proc/net/tcp has them: the address as the machine reads its bytes.
/// Source: Linux, Documentation/networking/proc_net_tcp.rst.
std::string tcp_text(const sockaddr_in& address) {
  return fmt::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
}

/// The owner of the socket that `client` is connected to, in a table of all sockets of this
/// machine. An address of IPv4 has `prefix` before it in the table of IPv6.
std::optional<std::uint32_t> owner_in(const char* table, const std::string& prefix,
                                      const sockaddr_in& client, const sockaddr_in& here) {
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);  // titles
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits;
    std::uint32_t user = 0;
    if (!(fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user)) {
      continue;
    }
    if (local == prefix + tcp_text(client) && remote == prefix + tcp_text(here)) return user;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> user_of_tcp_client(int client) {
  sockaddr_in there{}, here{};
  socklen_t there_size = sizeof there, here_size = sizeof here;
  if (getpeername(client, reinterpret_cast<sockaddr*>(&there), &there_size) != 0 ||
      getsockname(client, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) {
    return std::nullopt;
  }
  if (const auto user = owner_in("/proc/net/tcp", "", there, here)) return user;
  return owner_in("/proc/net/tcp6", "0000000000000000FFFF0000", there, here);
}

}  // namespace

Listener::Listener(std::uint16_t port) {
  const std::string where = "port " + std::to_string(port);
  socket_ = socket(AF_INET, kListenerFlags, 0);
  if (socket_ < 0) fail(where, "cannot make a socket", errno);
  const int on = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket_, generic, size) != 0 || listen(socket_, kWaiting) != 0 ||
      getsockname(socket_, generic, &size) != 0) {
    const int error = errno;
    close(socket_);
    fail(where, "cannot listen", error);
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

Listener::Listener(const std::string& path) : address_(path) {
  const sockaddr_un address = socket_address(path);
  make_room_for(path, address);
  socket_ = socket(AF_UNIX, kListenerFlags, 0);
  if (socket_ < 0) fail(path, "cannot make a socket", errno);
  // Whoever may write to a socket may connect to it (unix(7)): nobody else, at no time.
  const mode_t mask = umask(0077);
  const bool bound =
      bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  umask(mask);
  if (!bound || listen(socket_, kWaiting) != 0) {
    const int why = bound ? errno : error;
    close(socket_);
    if (bound) unlink(path.c_str());
    fail(path, "cannot listen", why);
  }
  path_ = path;
}

Listener::~Listener() {
  close(socket_);
  if (!path_.empty()) unlink(path_.c_str());
}

int Listener::accept() {
  const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) {
    // None, or one that has gone again.
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return -1;
    fail(address_, "cannot accept", errno);
  }
  // Answers are small, and gdb waits for each.
  const int on = 1;
  if (path_.empty()) setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return client;
}

std::optional<std::uint32_t> user_of_client(int client) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(client, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  if (address.ss_family == AF_INET) return user_of_tcp_client(client);
  ucred peer{};
  size = sizeof peer;
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

std::string why_turned_away(int client, int milliseconds) {
  const std::optional<std::uint32_t> user = user_of_client(client);
  if (!user) return "its owner is not known";
  if (*user != geteuid() && *user != 0) return fmt::format("it is of user {}", *user);
  pollfd wait{client, POLLIN, 0};
  if (poll(&wait, 1, milliseconds) == 0) {
    return fmt::format("it has said nothing for {} s", milliseconds / 1000);
  }
  std::array<char, kShownBytes> bytes;
  const ssize_t n = recv(client, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (n <= 0) return "it has gone again";
  return why_not_gdb({bytes.data(), static_cast<std::size_t>(n)});
}

}  // namespace citcat::gdb
