#include "replay/verify/mismatch.h"

#include <cinttypes>
#include <cstdio>

#include "replay/machine/replay_stopped.h"

namespace citcat {

namespace {

std::string transaction_text(const BusTransaction& t) {
  char text[96];
  std::snprintf(text, sizeof text, "%s of %u bytes at %08" PRIx64,
                std::string(bus_op_name(t.op)).c_str(), t.size, t.address.value);
  std::string result = text;
  if (t.op == BusOp::data_write || t.op == BusOp::io_write) result += " = " + packed_hex(t.bytes());
  return result;
}

}  // namespace

void stop_with(const Mismatch& mismatch, Position now) {
  ReplayStopped stop{now, mismatch.reason, kNoTransaction, "nothing", mismatch.found};
  if (mismatch.expected) {
    stop.transaction = mismatch.expected->index;
    stop.expected = transaction_text(*mismatch.expected);
    stop.shown = mismatch.expected;
  }
  throw stop;
}

std::string packed_hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  char buffer[4];
  for (const std::uint8_t b : bytes) {
    std::snprintf(buffer, sizeof buffer, "%02x", b);
    text += buffer;
  }
  return text;
}

std::string write_text(PhysAddr a, std::span<const std::uint8_t> bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "write of %zu bytes at %08" PRIx64 " = ", bytes.size(), a.value);
  return text + packed_hex(bytes);
}

std::string memory_text(const Memory& memory, PhysAddr a, std::uint32_t size) {
  std::string text = "bytes ";
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto byte = memory.defined_byte(a.plus32(i));
    const std::uint8_t value = byte.value_or(0);
    text += byte ? packed_hex({&value, 1}) : "??";
  }
  return text;
}

}  // namespace citcat
