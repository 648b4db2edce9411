#pragma once
// How the values in a column of a text table are written: levels, or numbers to some base for
// several channels. The name of the column and its first values show it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// The values of one column.
struct CellForm {
  enum class Kind : std::uint8_t {
    text,        ///< no values: disassembly, symbols
    level,       ///< 0 or 1, of one channel
    word_level,  ///< High, L, true, ...
    real_level,  ///< 0.0 or 1.000e+00
    voltage,     ///< any real number
    number,      ///< to `base`, of `channels`
  };
  Kind kind = Kind::text;
  unsigned base = 16;
  /// Names of the channels, the one with the lowest bit first.
  std::vector<std::string> channels;
  /// For a warning: what the values alone decided, and why. Empty if nothing.
  std::string doubt;
};

/// Finds the form of the column `name` from its values in the first rows, at least one. `numbers`:
/// the first row has values of several digits, so that this column may be a digit of its own. A
/// name may contain the numbers of its bits: "AD[7:0]", "A(19..8)", "AD7-AD0".
///
/// Voltages are columns of real numbers in a table where one has others than 0 and 1.
CellForm form_of_cells(std::string_view name, const std::vector<std::string_view>& cells,
                       bool numbers, bool voltages);

/// The number in `cell`, written to `base`, with or without a prefix or suffix for that base
/// (0x18, 18h, $18, 8'h18, 0b101); nullopt for anything else.
std::optional<std::uint64_t> parse_cell(std::string_view cell, unsigned base);
/// A real number with a decimal sign or an exponent, such as "3.28" or "-1,2e-02".
std::optional<double> real_number(std::string_view cell);
/// Whether a column holds real numbers other than 0 and 1, and not as the damage of a few cells.
bool are_voltages(const std::vector<std::string_view>& cells);
/// The least and the greatest number of a column.
struct CellRange {
  double least = 0, greatest = 0;
  double width() const { return greatest - least; }
};
CellRange range_of(const std::vector<std::string_view>& cells);
/// The level in a cell such as "0.0", "1,000" or "1.00e+00"; nullopt for anything else.
std::optional<bool> real_level(std::string_view cell);

}  // namespace citcat
