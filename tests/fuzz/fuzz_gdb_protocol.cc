#include <cstdint>
#include <string_view>

#include "debugger/protocol/packet_reader.h"
#include "debugger/protocol/request.h"
#include "fuzz/fuzz_target.h"

// What gdb, or anybody who connects, may send: whole packets among it, and anything for the data of
// one.
CITCAT_FUZZ_TARGET(gdb_protocol) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  citcat::gdb::parse_request(bytes);
  citcat::gdb::PacketReader reader;
  reader.add(bytes);
  for (citcat::gdb::Incoming incoming; reader.take(incoming);) {
    citcat::gdb::parse_request(incoming.data);
  }
  return 0;
}
