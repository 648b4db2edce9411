#include "events/external_write.h"

namespace citcat {

namespace {

// A write is a byte of these, then what they leave open: differences to the one before.
constexpr std::uint8_t kWriteKnown = 0x01;      ///< ExternalWrite::position_known
constexpr std::uint8_t kWriteIteration = 0x02;  ///< is not 0, and follows
constexpr std::uint8_t kSameSize = 0x04;        ///< as much data as before
constexpr std::uint8_t kSameWrites = 0x08;      ///< of the anchor, as before
constexpr std::uint8_t kSameIo = 0x10;          ///< the same
constexpr std::uint8_t kSameInterrupts = 0x20;  ///< the same
/// All of the window's beginning but the reads is that of the anchor.
constexpr std::uint8_t kOnlyReads = 0x40;
constexpr std::uint8_t kNextWrite = 0x80;  ///< the transaction is the next one; else the difference

/// What follows `write` in memory, as its successor in a buffer does.
std::uint64_t behind(const ExternalWrite& write) { return write.address.value + write.data.size(); }

bool differ_in_reads_alone(const BusAnchor& a, const BusAnchor& b) {
  return a.writes == b.writes && a.io == b.io && a.interrupts == b.interrupts;
}

}  // namespace

void ExternalWriteCodec::pack(const ExternalWrite& write, const ExternalWrite& before,
                              PackedWriter& out) {
  const BusAnchor &anchor = write.anchor, &window = write.window_begin;
  std::uint8_t head = 0;
  if (write.position_known) head |= kWriteKnown;
  if (write.position.iteration != 0) head |= kWriteIteration;
  if (write.data.size() == before.data.size()) head |= kSameSize;
  if (anchor.writes == before.anchor.writes) head |= kSameWrites;
  if (anchor.io == before.anchor.io) head |= kSameIo;
  if (anchor.interrupts == before.anchor.interrupts) head |= kSameInterrupts;
  if (differ_in_reads_alone(window, anchor)) head |= kOnlyReads;
  if (write.transaction == before.transaction + 1) head |= kNextWrite;
  out.byte(head);
  out.difference(write.address.value, behind(before));
  if ((head & kSameSize) == 0) out.varint(write.data.size());
  out.bytes(write.data);
  out.difference(write.position.instruction, before.position.instruction);
  if ((head & kWriteIteration) != 0) out.varint(write.position.iteration);
  if ((head & kSameWrites) == 0) out.difference(anchor.writes, before.anchor.writes);
  if ((head & kSameIo) == 0) out.difference(anchor.io, before.anchor.io);
  if ((head & kSameInterrupts) == 0) out.difference(anchor.interrupts, before.anchor.interrupts);
  out.difference(anchor.reads, before.anchor.reads);
  out.difference(window.reads, anchor.reads);
  if ((head & kOnlyReads) == 0) {
    out.difference(window.writes, anchor.writes);
    out.difference(window.io, anchor.io);
    out.difference(window.interrupts, anchor.interrupts);
  }
  if ((head & kNextWrite) == 0) out.difference(write.transaction, before.transaction);
}

void ExternalWriteCodec::unpack(PackedReader& in, ExternalWrite& write) {
  BusAnchor &anchor = write.anchor, &window = write.window_begin;
  const std::uint8_t head = in.byte();
  write.position_known = (head & kWriteKnown) != 0;
  write.address.value = in.difference(behind(write));
  const std::size_t size =
      (head & kSameSize) != 0 ? write.data.size() : static_cast<std::size_t>(in.varint());
  const auto data = in.bytes(size);
  write.data.assign(data.begin(), data.end());
  write.position.instruction = in.difference(write.position.instruction);
  write.position.iteration =
      (head & kWriteIteration) != 0 ? static_cast<std::uint32_t>(in.varint()) : 0;
  if ((head & kSameWrites) == 0) anchor.writes = in.difference(anchor.writes);
  if ((head & kSameIo) == 0) anchor.io = in.difference(anchor.io);
  if ((head & kSameInterrupts) == 0) anchor.interrupts = in.difference(anchor.interrupts);
  anchor.reads = in.difference(anchor.reads);
  window = anchor;
  window.reads = in.difference(anchor.reads);
  if ((head & kOnlyReads) == 0) {
    window.writes = in.difference(anchor.writes);
    window.io = in.difference(anchor.io);
    window.interrupts = in.difference(anchor.interrupts);
  }
  write.transaction =
      (head & kNextWrite) != 0 ? write.transaction + 1 : in.difference(write.transaction);
}

}  // namespace citcat
