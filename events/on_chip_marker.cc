#include "events/on_chip_marker.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "formats/io/error.h"

namespace citcat {
namespace {

struct MarkerRow {
  OnChipMarker::Kind kind;
  BusOp op;
  std::string_view name;
};
constexpr std::array<MarkerRow, 3> kMarkerKinds{{
    {OnChipMarker::Kind::io_write, BusOp::io_write, "io-write"},
    {OnChipMarker::Kind::memory_write, BusOp::data_write, "mem-write"},
    {OnChipMarker::Kind::memory_read, BusOp::data_read, "mem-read"},
}};

const MarkerRow& marker_row(OnChipMarker::Kind kind) {
  return *std::find_if(kMarkerKinds.begin(), kMarkerKinds.end(),
                       [kind](const MarkerRow& row) { return row.kind == kind; });
}

[[noreturn]] void refuse(std::string_view text) {
  throw UsageError(
      "expected VECTOR=io-write:PORT[:VALUE], VECTOR=mem-write:ADDR[:VALUE] or "
      "VECTOR=mem-read:ADDR[:VALUE] with hexadecimal numbers, found \"" +
      std::string(text) + "\"");
}

/// Takes the text up to `separator` off the front of `rest`; all of it where there is none.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

std::string_view without_prefix(std::string_view digits) {
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  return digits;
}

std::optional<std::uint32_t> hexadecimal(std::string_view text, std::uint32_t most) {
  const std::string_view digits = without_prefix(text);
  std::uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.empty() || error != std::errc() || stopped != end || value > most) return std::nullopt;
  return value;
}

/// The bytes of a number in memory, lowest first; nothing where the text is none of 1, 2 or 4.
std::optional<std::vector<std::uint8_t>> value_bytes(std::string_view text) {
  const std::size_t digits = without_prefix(text).size();
  const std::size_t size = (digits + 1) / 2;
  const auto value = hexadecimal(text, ~std::uint32_t{0});
  if (!value || size == 3 || size > 4) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < size; ++i)
    bytes.push_back(static_cast<std::uint8_t>(*value >> (8 * i)));
  return bytes;
}

}  // namespace

bool OnChipMarker::shown_by(const BusTransaction& t) const {
  if (t.op != marker_row(kind).op || t.has(kWriteBack)) return false;
  const std::uint32_t offset = address.minus32(t.address);
  const std::size_t wanted = bytes ? bytes->size() : 1;
  if (offset >= t.size || t.size - offset < wanted) return false;
  return !bytes || std::equal(bytes->begin(), bytes->end(), t.data.begin() + offset);
}

OnChipMarker parse_on_chip_marker(std::string_view text) {
  std::string_view rest = text;
  OnChipMarker marker;
  const auto vector = hexadecimal(take_until(rest, '='), 0xff);
  const std::string_view kind = take_until(rest, ':');
  const auto* const row = std::find_if(kMarkerKinds.begin(), kMarkerKinds.end(),
                                       [kind](const MarkerRow& k) { return k.name == kind; });
  if (!vector || row == kMarkerKinds.end()) refuse(text);
  const bool is_port = row->kind == OnChipMarker::Kind::io_write;
  const auto address = hexadecimal(take_until(rest, ':'), is_port ? 0xffff : ~std::uint32_t{0});
  if (!address) refuse(text);
  marker.vector = static_cast<std::uint8_t>(*vector);
  marker.kind = row->kind;
  marker.address = PhysAddr{*address};
  if (text.ends_with(':')) refuse(text);
  if (rest.empty()) return marker;
  marker.bytes = value_bytes(rest);
  if (!marker.bytes) refuse(text);
  return marker;
}

std::string on_chip_marker_text(const OnChipMarker& marker) {
  char text[48];
  std::snprintf(text, sizeof text, "%02x=%.*s:%x", marker.vector,
                static_cast<int>(marker_row(marker.kind).name.size()),
                marker_row(marker.kind).name.data(), marker.address.u32());
  std::string result = text;
  if (!marker.bytes) return result;
  result += ':';
  for (auto byte = marker.bytes->rbegin(); byte != marker.bytes->rend(); ++byte) {
    std::snprintf(text, sizeof text, "%02x", *byte);
    result += text;
  }
  return result;
}

}  // namespace citcat
