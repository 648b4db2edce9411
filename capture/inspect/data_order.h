#pragma once
// Finds the order of a bus's sixteen data lines, if they have no names, from jumps. The bytes of a
// jump, a return or the entry of an interrupt say where code is fetched next; with a wrong order of
// the lines it would lead elsewhere.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace citcat {

/// A byte as the lines show it, before it is known which line is which.
struct RawByte {
  std::uint32_t place = 0;  ///< its address, as far as it is known
  std::uint16_t lines = 0;  ///< bit i: level of line i
  bool upper = false;       ///< it is on D8-D15
};

/// Code that is not fetched where the fetch before it ended.
struct RawTransfer {
  std::vector<RawByte> code;  ///< the last bytes before it
  std::vector<RawByte> read;  ///< the data read last before it
  std::uint32_t target = 0;   ///< where it is, as far as it is known
};

struct DataOrder {
  static constexpr std::size_t kLines = 16;
  /// By bit of the bus, the number of its line.
  std::array<std::size_t, kLines> line{};
  std::size_t explained = 0, of = 0;  ///< transfers that lead where code is fetched
  /// Bits whose lines could be exchanged, and all but one of them would lead there.
  std::vector<std::pair<unsigned, unsigned>> alike;
};

/// The order with which most transfers lead where code is fetched; nothing when so few do that it
/// may be chance. `known_bits`: of addresses, from bit 0. `fixed`: the lines that are known, by
/// bit.
std::optional<DataOrder> order_data_lines(
    const std::vector<RawTransfer>& transfers, unsigned known_bits,
    const std::array<std::optional<std::size_t>, DataOrder::kLines>& fixed);

}  // namespace citcat
