#pragma once
// Where gdbs of this machine connect: a port of the loopback address, or a socket in the file
// system.

#include <cstdint>
#include <optional>
#include <string>

namespace citcat::gdb {

class Listener {
 public:
  /// A TCP port of the loopback address, which only programs of this machine reach; 0: any that is
  /// free. Throws IoError.
  explicit Listener(std::uint16_t port);
  /// A socket that only its owner may open. A socket that has no listener any longer is replaced;
  /// anything else of that name stays, and causes a UsageError. Throws IoError.
  explicit Listener(const std::string& path);
  /// Removes the socket's file.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// As gdb's `target remote` takes it: "127.0.0.1:1234", or the path.
  const std::string& address() const { return address_; }
  int descriptor() const { return socket_; }
  /// A client that waits; its descriptor, the caller's to close. -1 where there is none. Throws
  /// IoError.
  int accept();

 private:
  int socket_ = -1;
  std::string address_, path_;
};

/// The user at the other end of a descriptor that accept() gave; nullopt where nobody can tell.
std::optional<std::uint32_t> user_of_client(int client);

/// Whoever debugs reads all that the recorded machine had in its memory: only the user who runs
/// this program may, and root. Then waits for the client's first bytes, which a browser and
/// whatever else has lost its way sends differently from gdb. Returns why the client is to be
/// turned away; empty for a gdb.
std::string why_turned_away(int client, int milliseconds);

}  // namespace citcat::gdb
