#pragma once
// Address traces of Brigham Young University: 12-byte records ("BYU Address Trace Format" v1.0 and
// v1.1) and 6-byte records ("Address Trace Specification" v1.0, Pentium). Neither has a header nor
// data. See docs/formats/byu.md.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "formats/io/input.h"

namespace citcat {

inline constexpr std::size_t kByuRecordBytes = 12;
inline constexpr std::size_t kByuPentiumRecordBytes = 6;

/// Request types (byutr.h of the BYU tools; 30h is reset in traces of virtual machines).
enum class ByuRequest : std::uint8_t {
  fetch = 0x00,
  read = 0x01,
  read_invalidate = 0x02,
  write = 0x03,
  io_read = 0x10,
  io_write = 0x11,
  deferred_reply = 0x20,
  interrupt_acknowledge = 0x21,
  central_agent = 0x22,
  branch_trace = 0x23,
  reset = 0x30,
  shutdown = 0x31,
  flush = 0x32,
  halt = 0x33,
  sync = 0x34,
  flush_acknowledge = 0x35,
  stop_clock_acknowledge = 0x36,
  smi_acknowledge = 0x37,
};
/// Whether the value is one of the above.
bool is_byu_request(std::uint8_t value);
/// Name as in the listings of the BYU tools, e.g. "MEMREAD"; "" for other values.
std::string_view byu_request_name(std::uint8_t value);

struct ByuRecord {
  std::uint32_t address = 0;  ///< physical
  std::uint8_t request = 0;
  std::uint8_t size = 0;  ///< bytes
  std::uint8_t attribute =
      0;  ///< bits 1-0: 0 uncacheable, 1 write through, 2 write protect, 3 write back
  std::uint8_t agent = 0;
  std::uint32_t time = 0;  ///< bus clocks since the previous record
};
ByuRecord unpack_byu(std::span<const std::uint8_t, kByuRecordBytes> bytes);
std::array<std::uint8_t, kByuRecordBytes> pack_byu(const ByuRecord& record);

/// Bus cycles of 6-byte records, in bits 7-4 of `control`: M/IO#, D/C#, W/R#, CACHE# level.
struct ByuPentiumRecord {
  std::uint32_t address = 0;  ///< of the quadword
  std::uint8_t enables = 0;   ///< active low, bit i: byte i
  std::uint8_t control = 0;
};
ByuPentiumRecord unpack_byu_pentium(std::span<const std::uint8_t, kByuPentiumRecordBytes> bytes);
/// Whether `control` is a cycle the specification knows.
bool is_byu_pentium_control(std::uint8_t control);

/// 0 to 100: how much the beginning of a file looks like 12-byte or 6-byte records.
int rate_byu(std::span<const std::uint8_t> prefix);
int rate_byu_pentium(std::span<const std::uint8_t> prefix);

}  // namespace citcat
