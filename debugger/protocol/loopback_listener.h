#pragma once

#include <cstdint>

namespace citcat::gdb {

/// A TCP port of the loopback address, which only programs of this machine can connect to.
class LoopbackListener {
 public:
  /// `port` 0: any that is free. Throws IoError.
  explicit LoopbackListener(std::uint16_t port);
  ~LoopbackListener();
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  std::uint16_t port() const { return port_; }
  /// Waits for a client; its descriptor, the caller's to close. -1 where a signal came. Throws
  /// IoError.
  int accept();

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace citcat::gdb
