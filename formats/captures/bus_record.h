#pragma once
// The 40-byte bus record, which both the headerless captures of a virtual bus monitor and the
// native capture format are made of. docs/formats/capture.md has the layout.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace citcat {

inline constexpr std::size_t kBusRecordBytes = 40;
/// `instructions` of a record whose position was not counted.
inline constexpr std::uint64_t kNoCount = ~std::uint64_t{0};
/// Data bytes in one record: half a 32-byte line.
inline constexpr std::size_t kBusRecordData = 16;

/// A record as it is in a file, not yet judged.
struct BusRecord {
  std::uint64_t instructions = 0;  ///< completed before it, or kNoCount
  std::uint32_t clock = 0;         ///< wraps
  std::uint32_t address = 0;
  std::uint32_t iterations = 0;  ///< of the REP instruction in flight, completed
  std::uint8_t type = 0;
  std::uint8_t size = 0;
  std::uint8_t flags = 0;
  std::uint8_t burst = 0;  ///< index of the 16-byte part within its line
  std::array<std::uint8_t, kBusRecordData> data{};
};

inline BusRecord unpack_bus_record(std::span<const std::uint8_t, kBusRecordBytes> bytes) {
  // Records are moved as whole words; hosts with another byte order would need swaps here.
  static_assert(std::endian::native == std::endian::little);
  static_assert(sizeof(BusRecord) == kBusRecordBytes && std::is_trivially_copyable_v<BusRecord> &&
                offsetof(BusRecord, type) == 20 && offsetof(BusRecord, data) == 24);
  // By fields, because a load across two of the stores of a copy would wait for both.
  const auto load = [&](auto& field, std::size_t offset) {
    std::memcpy(&field, bytes.subspan(offset).data(), sizeof field);
  };
  BusRecord record;
  load(record.instructions, offsetof(BusRecord, instructions));
  load(record.clock, offsetof(BusRecord, clock));
  load(record.address, offsetof(BusRecord, address));
  load(record.iterations, offsetof(BusRecord, iterations));
  load(record.type, offsetof(BusRecord, type));
  load(record.size, offsetof(BusRecord, size));
  load(record.flags, offsetof(BusRecord, flags));
  load(record.burst, offsetof(BusRecord, burst));
  load(record.data, offsetof(BusRecord, data));
  return record;
}

}  // namespace citcat
