#pragma once
// Runs of memory accesses, read in place from a monitor's records: making a BusTransaction of each
// would take as long as everything else that is done with it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "events/bus_transaction.h"
#include "formats/captures/bus_record.h"

namespace citcat {

/// Accesses of one operation, size and flags, with what follows from these; few are met in a
/// capture.
struct RunKind {
  RunKind() = default;
  /// Memory operations of at most 16 bytes, which stay within 16 aligned ones.
  RunKind(BusOp op, std::uint8_t size, std::uint16_t flags);

  BusOp op = BusOp::code_read;
  std::uint8_t size = 0;
  std::uint16_t flags = 0;     ///< as of a BusTransaction, without kPositionKnown
  std::uint8_t kept_data = 0;  ///< bytes of data that are evidence: those of writes
  /// 16 zeros, `size` bytes FFh, zeros: what an access at offset n of 16 aligned bytes covers of
  /// them is n bytes before the middle.
  std::array<std::uint8_t, 2 * kBusRecordData> cover{};
  std::array<std::uint64_t, 2> reads{};  ///< all ones where memory is read
  /// What it adds to counts, 16 bits each: RunTotal; and to the bytes that processors write.
  std::uint64_t totals = 0;
  std::uint32_t written = 0;
  /// An address that may belong to an entry to system management mode (SmmEntryDetector) has this
  /// value under the mask.
  std::uint32_t watch_mask = 0, watch_value = 1;
};
/// Places of counts in RunKind::totals, as shifts: those of RecordingTotals, and of data reads.
enum RunTotal : std::uint8_t { kReads = 0, kLineFills = 16, kWrites = 32, kDataReads = 48 };
using RunKinds = std::array<RunKind, 256>;

/// The shape of a bus access, in 15 bits: operation (2), size (5), and those flags (8) of a
/// BusTransaction that accesses have.
inline constexpr unsigned kShapeSizeShift = 2, kShapeFlagsShift = 7, kShapeBits = 15;
inline constexpr std::uint32_t access_shape(BusOp op, std::uint8_t size, std::uint16_t flags) {
  return static_cast<std::uint32_t>(op) | std::uint32_t{size} << kShapeSizeShift |
         (flags & 0xffU) << kShapeFlagsShift;
}

/// Fields of the records of a run, for vectors of 64 bytes.
struct AccessColumns {
  static constexpr std::size_t kMax = 256;
  alignas(64) std::array<std::uint64_t, kMax> instructions;
  alignas(64) std::array<std::uint32_t, kMax> clock, address, iterations;
  alignas(64) std::array<std::uint32_t, kMax> shape;  ///< access_shape(), without kPositionKnown
};

/// A run of them. What it looks at belongs to who made it.
struct AccessRun {
  /// No run is longer: what is done with one finds it in the first-level cache.
  static constexpr std::size_t kMax = AccessColumns::kMax;

  std::span<const std::uint8_t> records;  ///< kBusRecordBytes each, found correct
  std::span<const std::uint8_t> number;   ///< the kind of each, in `kinds`
  const RunKinds* kinds = nullptr;
  /// The same records, the first of them at `column`; null where that was not worth it.
  const AccessColumns* columns = nullptr;
  std::size_t column = 0;
  std::uint64_t index = 0;       ///< ordinal of the first in the capture; others follow it
  std::uint64_t high_clock = 0;  ///< to be added to their clocks
  std::uint16_t flags = 0;       ///< that any of them has
  // The instruction counts of the accesses:
  bool counted = false;
  std::uint64_t base = 0;      ///< to be subtracted; no more than `lowest`
  std::uint64_t highest = 0;   ///< as counted
  std::uint64_t lowest = 0;    ///< or less
  std::uint64_t disorder = 0;  ///< how far any is behind one before it, or more

  std::size_t size() const { return number.size(); }
  bool empty() const { return number.empty(); }
  BusRecord record(std::size_t i) const {
    return unpack_bus_record(records.subspan(i * kBusRecordBytes).first<kBusRecordBytes>());
  }
  const RunKind& kind(std::size_t i) const { return (*kinds)[number[i]]; }
  /// Some of them; what is said of all of them stays as it is.
  AccessRun part(std::size_t first, std::size_t count) const {
    AccessRun some = *this;
    some.records = records.subspan(first * kBusRecordBytes, count * kBusRecordBytes);
    some.number = number.subspan(first, count);
    some.index = index + first;
    some.column = column + first;
    return some;
  }
  /// The transaction that the `i`-th is.
  BusTransaction at(std::size_t i) const;
};

}  // namespace citcat
