#pragma once
// Bytes that gdb sends, cut into packets. A packet with a wrong checksum is never accepted, and at
// most the bytes of the longest packet are kept.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "debugger/protocol/packet_text.h"

namespace citcat::gdb {

struct Incoming {
  enum class Kind : std::uint8_t {
    packet,
    damaged,    ///< a packet that is to be sent again
    interrupt,  ///< Ctrl-C, between packets
    ack,
    nak,
  } kind = Kind::packet;
  std::string data;  ///< of a packet
};

class PacketReader {
 public:
  void add(std::string_view bytes);
  /// False where nothing is complete.
  bool take(Incoming& out);

 private:
  void add(char c);
  void finish(char second);

  enum class State : std::uint8_t { between, body, first_digit, second_digit } state_{};
  std::string body_;
  char first_ = 0;
  bool too_long_ = false;
  std::deque<Incoming> ready_;
};

}  // namespace citcat::gdb
