#pragma once
// The numbers of the bits of a word, as the name of a signal or a column gives them: "AD[7:0]".

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace citcat {

struct BitRange {
  std::string stem;  ///< the name before the numbers
  std::uint64_t highest = 0, lowest = 0;
  bool ascending = false;  ///< "[0:7]": the bit of the highest value has the lowest number

  std::size_t bits() const { return highest - lowest + 1; }
  /// The number of a bit, counted from that of the lowest value.
  std::uint64_t number(std::size_t bit) const { return ascending ? highest - bit : lowest + bit; }
};

/// The range in brackets of any kind: "AD[7:0]", "AD (7..0)", "AD<7 downto 0>", each with whatever
/// follows. Nullopt without one.
std::optional<BitRange> bracketed_range(std::string_view name);
/// The same, or a range without brackets: "AD 7:0"; "AD7-AD0" and "AD0..AD7", whose value is the
/// same whichever bit is named first.
std::optional<BitRange> bit_range_of(std::string_view name);

}  // namespace citcat
