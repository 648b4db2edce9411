#pragma once
// A bus transaction: the meaning of one or several cycles on the pins. The readers of all monitors
// (logic analyser, hardware collector, emulator) make a stream of these, in bus order.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

enum class BusOp : std::uint8_t {
  code_read,              ///< instruction fetch, single or line
  data_read,              ///< memory read by the processor (data, stack, descriptor, page walk)
  data_write,             ///< memory write by the processor, or write-back of a line
  io_read,                ///< `address` is the port
  io_write,               ///< `address` is the port
  interrupt_acknowledge,  ///< both INTA cycles; data[0] is the vector
  halt,
  shutdown,
  flush,  ///< data[0]: 1 INVD, 2 WBINVD
  reset,
  nmi,                ///< not a bus cycle: a monitor that probes the NMI pin reports its edge
  smi,                ///< entry to system management mode, where a monitor shows it
  instruction_start,  ///< not a bus cycle: pins that report execution (8088 queue status, branch
                      ///< trace). `address` is the first byte on the bus, data its bytes
};
inline constexpr int kBusOpCount = 13;

/// Short lower-case name for listings and JSON, e.g. "data_write".
std::string_view bus_op_name(BusOp op);

/// Bits of BusTransaction::flags.
enum BusFlag : std::uint16_t {
  kLine = 1,            ///< line burst: size and address are those of the line part
  kWriteBack = 2,       ///< write-back of a dirty line
  kUncacheable = 4,     ///< KEN# inactive for this address
  kSnoop = 8,           ///< write-back forced by another bus master
  kStateWindow = 16,    ///< written by the driver into its reserved window
  kStoreFill = 32,      ///< fill caused by a store (write-allocate)
  kPositionKnown = 64,  ///< `position` was counted by the monitor
  kClockKnown = 128,    ///< `clock` was captured
  kPrefix = 256,   ///< instruction_start of a prefix byte: part of the instruction that follows
  kFlushed = 512,  ///< first instruction_start after the prefetch queue was emptied
  /// instruction_start that a branch trace message reports: the target of a branch that was taken.
  /// `address` is linear, or an offset in CS if the message has only that; the instruction begins
  /// at one of the `size` bytes from there, whose data are not known.
  kBranchTarget = 1024,
};

/// Largest transaction: one 32-byte line (Pentium and later, Intel SDM vol. 3, 11.1).
inline constexpr std::size_t kMaxTransactionBytes = 32;

/// Stands for the ordinal of a transaction where there is none.
inline constexpr std::uint64_t kNoTransaction = ~std::uint64_t{0};

/// One bus transaction. `data` is in address order: data[i] is the byte at address+i. Bytes beyond
/// `size` are zero. A transaction never crosses a line, and a single transfer never crosses an
/// aligned bus word, except a port access that a monitor shows whole.
struct BusTransaction {
  std::uint64_t index = 0;  ///< ordinal in the capture, from 0
  std::uint64_t clock = 0;  ///< bus clock or sample number of its start, if kClockKnown
  Position position;        ///< instructions completed before it, if kPositionKnown
  PhysAddr address;         ///< physical address, or port for I/O
  BusOp op = BusOp::code_read;
  std::uint8_t size = 0;  ///< valid bytes in data
  std::uint16_t flags = 0;
  std::array<std::uint8_t, kMaxTransactionBytes> data{};

  bool has(BusFlag flag) const { return (flags & flag) != 0; }
  std::span<const std::uint8_t> bytes() const { return {data.data(), size}; }
  /// The first min(size,4) bytes as a little-endian number: the value of an I/O access.
  std::uint32_t value() const {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < size && i < 4; ++i) v |= std::uint32_t{data[i]} << (8 * i);
    return v;
  }
  bool is_memory() const { return op <= BusOp::data_write; }
};

}  // namespace citcat
