#pragma once
// How a bus shows a port access that is wider than the bus, or not aligned to it.
//
// I/O transfers are at most four bytes wide and never cross an aligned dword, on wider buses
// either. The parts of an access, and their order:
// - 8088, 8086, 80286: lowest address first (8086 Family User's Manual, 2-10; seen on an 80286 in
//   the single-step tests of docs/silicon.md).
// - 386 and later: the part in the upper dword first, and within a dword the lowest address first
//   (80386 Hardware Reference Manual, table 3-4; Embedded Intel486 Processor Hardware Reference
//   Manual, table 4-7). Later processors need not keep to that (Intel SDM vol. 1, 18.3): the lower
//   dword may come first.
// - BS8# and BS16# make a 386 or 486 transfer fewer bytes at a time than its bus has.

#include <array>
#include <cstdint>
#include <optional>

#include "events/bus_transaction.h"
#include "events/machine/cpu_state.h"
#include "events/recording.h"

namespace citcat {

/// The properties of a bus that decide about the parts.
class PortBus {
 public:
  /// A width that the processor cannot have is one that nobody declared: any that it can is right.
  PortBus(const BusModel& bus, CpuModel model);

  /// Whether `size` bytes from `port` on may be one transfer, where `left` remain up to the end of
  /// the access or its dword.
  bool may_transfer(std::uint32_t port, std::uint32_t size, std::uint32_t left) const;
  /// Bytes of the longest transfer from `port` on.
  std::uint32_t room(std::uint32_t port) const { return widest_ - port % widest_; }
  /// Where the upper of two dwords may come first.
  bool upper_first() const { return upper_first_; }

 private:
  std::uint32_t widest_ = 4;     ///< bytes: 1, 2 or 4
  std::uint32_t narrowest_ = 4;  ///< the same, of what a device may ask for
  bool upper_first_ = false;
};

/// The access of one instruction, or one iteration, and the transactions that show it: one, made by
/// a monitor that sees accesses and not transfers, or those of the bus.
class PortAccess {
 public:
  /// `size`: bytes, 1, 2 or 4.
  PortAccess(const PortBus& bus, std::uint16_t port, std::uint32_t size)
      : bus_(bus), port_(port), size_(size) {}

  /// The next transaction of the same direction, with its address on the bus: the offset of its
  /// bytes in the access, or nothing where it is no part of the access that can come here. A part
  /// after port FFFF is at 10000, as an 80286 shows it, or at 0.
  std::optional<std::uint32_t> take(PhysAddr address, std::uint32_t size);
  bool complete() const { return taken_ == size_; }
  /// Some of it has been taken.
  bool begun() const { return taken_ != 0; }

 private:
  bool is_at(PhysAddr address, std::uint32_t offset) const;
  std::optional<std::uint32_t> begin(PhysAddr address) const;

  const PortBus& bus_;
  std::uint32_t port_;
  std::uint32_t size_;
  std::uint32_t first_ = 0;  ///< offset of the part that came first
  std::uint32_t next_ = 0;   ///< offset of the part that comes next
  std::uint32_t taken_ = 0;  ///< bytes
};

/// How many bytes of the access lie below the dword in which it ends; 0 where it lies in one.
inline std::uint32_t bytes_below_dword(std::uint32_t port, std::uint32_t size) {
  const std::uint32_t below = 4 - port % 4;
  return below < size ? below : 0;
}

/// The bytes of a value from `offset` on, as a number.
inline std::uint32_t part_of(std::uint32_t value, std::uint32_t offset, std::uint32_t size) {
  const std::uint32_t shifted = value >> (8 * offset);
  return size >= 4 ? shifted : shifted & ((std::uint32_t{1} << (8 * size)) - 1);
}

/// Counts port accesses as the anchors of a recording do.
class PortCount {
 public:
  explicit PortCount(const Recording& recording);
  /// The number of transfers of an access as the replay makes it.
  std::uint64_t of(std::uint16_t port, std::uint32_t size) const;
  /// The number of transfers of a captured transaction.
  std::uint64_t of(const BusTransaction& t) const {
    return unit_ == PortUnit::bytes ? std::uint64_t{t.size} : 1;
  }

 private:
  PortUnit unit_;
  PortBus bus_;
  bool whole_ = false;  ///< by transactions: the monitor shows accesses and not transfers
};

}  // namespace citcat
