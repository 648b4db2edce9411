#include "events/io_reads.h"

#include <algorithm>

namespace citcat {

namespace {

// A read is a byte of these, then what they leave open.
constexpr std::uint8_t kSizeMask = 0x07;
constexpr std::uint8_t kKnown = 0x08;      ///< IoRead::position_known
constexpr std::uint8_t kSamePort = 0x10;   ///< as before; else two bytes
constexpr std::uint8_t kIteration = 0x20;  ///< is not 0, and follows
constexpr std::uint8_t kNext = 0x40;       ///< the transaction is the next one; else the difference
constexpr std::uint8_t kWideValue = 0x80;  ///< four bytes; else as many as the size says

unsigned value_bytes(std::uint8_t head) {
  return (head & kWideValue) != 0 ? 4u : std::min<unsigned>(head & kSizeMask, 4);
}

}  // namespace

void IoReadCodec::pack(const IoRead& read, const IoRead& before, PackedWriter& out) {
  const std::uint32_t narrow = read.size >= 4 ? ~0u : (1u << 8 * read.size) - 1;
  std::uint8_t head = read.size & kSizeMask;
  if (read.position_known) head |= kKnown;
  if (read.port == before.port) head |= kSamePort;
  if (read.position.iteration != 0) head |= kIteration;
  if (read.transaction == before.transaction + 1) head |= kNext;
  if ((read.value & ~narrow) != 0) head |= kWideValue;
  out.byte(head);
  if ((head & kSamePort) == 0) out.fixed(read.port, 2);
  out.difference(read.position.instruction, before.position.instruction);
  if ((head & kIteration) != 0) out.varint(read.position.iteration);
  if ((head & kNext) == 0) out.difference(read.transaction, before.transaction);
  out.fixed(read.value, value_bytes(head));
}

void IoReadCodec::unpack(PackedReader& in, IoRead& read) {
  const std::uint8_t head = in.byte();
  read.size = head & kSizeMask;
  read.position_known = (head & kKnown) != 0;
  if ((head & kSamePort) == 0) read.port = static_cast<std::uint16_t>(in.fixed(2));
  read.position.instruction = in.difference(read.position.instruction);
  read.position.iteration = (head & kIteration) != 0 ? static_cast<std::uint32_t>(in.varint()) : 0;
  read.transaction = (head & kNext) != 0 ? read.transaction + 1 : in.difference(read.transaction);
  read.value = static_cast<std::uint32_t>(in.fixed(value_bytes(head)));
}

}  // namespace citcat
