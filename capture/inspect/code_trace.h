#pragma once
// The bytes that bus cycles on unnamed channels move, as far as the lines are known; and the code
// fetches that do not continue the fetch before them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "capture/inspect/data_order.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

/// The lines that are known. Channels of the two data lanes and of what enables them only matter on
/// a bus of two bytes.
struct KnownLines {
  unsigned first = 0;              ///< the address bit of chain[0]
  std::vector<std::size_t> chain;  ///< address lines from there on
  bool is_wide = false;
  std::size_t low_enable = 0;     ///< A0 or BLE#: low where D0-D7 are used
  std::size_t high_enable = 0;    ///< BHE#: low where D8-D15 are used
  std::vector<std::size_t> data;  ///< channels of data lines, in any order

  unsigned known_bits() const { return first + static_cast<unsigned>(chain.size()); }
  std::uint32_t mask() const { return (std::uint32_t{1} << known_bits()) - 1; }
};

struct ByteAccess {
  std::size_t cycle = 0;  ///< number
  RawByte byte;
};

class CodeTrace {
 public:
  CodeTrace(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
            const KnownLines& lines)
      : activity_(activity), cycles_(cycles), lines_(lines) {}

  std::uint32_t place(const UnnamedCycle& cycle) const;
  /// The bytes of a cycle, the one with the lower address first.
  std::vector<RawByte> bytes(const UnnamedCycle& cycle) const;
  /// Transfers of code, each from one place to another once.
  std::vector<RawTransfer> transfers() const;

 private:
  std::uint16_t data(const UnnamedCycle& cycle) const;

  const ChannelActivity& activity_;
  const std::vector<UnnamedCycle>& cycles_;
  const KnownLines& lines_;
};

}  // namespace citcat
