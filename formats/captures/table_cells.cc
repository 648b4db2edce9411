#include "formats/captures/table_cells.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>

#include "formats/captures/bit_range.h"
#include "formats/captures/table_text.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

/// Fewer different values may look like another base by chance.
constexpr std::size_t kDistinctDecimals = 16;
constexpr std::size_t kRowsOfBits = 16;

bool take(std::string_view& text, std::string_view word) {
  if (lower_case(text.substr(0, word.size())) != word) return false;
  text.remove_prefix(word.size());
  return true;
}

/// A base that the name of a column says: "AD[7:0] (hex)"; 0 for none.
unsigned base_in_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 6> kWords = {
      {{"hex", 16}, {"hexadecimal", 16}, {"bin", 2}, {"binary", 2}, {"dec", 10}, {"decimal", 10}}};
  const std::size_t open = name.find_last_of("([{ ");
  if (open == std::string_view::npos) return 0;
  std::string word = lower_case(name.substr(open + 1));
  if (!word.empty() && std::string_view(")]}").find(word.back()) != std::string_view::npos)
    word.pop_back();
  for (const auto& [text, base] : kWords)
    if (word == text) return base;
  return 0;
}

/// The digits of a number, and the base that a prefix or a suffix gives; 0 for none.
struct Digits {
  std::string_view text;
  unsigned base = 0;
};

Digits digits_of(std::string_view cell) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 8> kPrefixes = {
      {{"0x", 16}, {"0b", 2}, {"$", 16}, {"#", 16}, {"&h", 16}, {"h", 16}, {"b'", 2}, {"x\"", 16}}};
  // Verilog: 8'h18, 'b101.
  const std::size_t quote = cell.find('\'');
  if (quote != std::string_view::npos && quote + 2 < cell.size() && quote <= 2) {
    const std::string sign = lower_case(cell.substr(quote + 1, 1));
    const unsigned base = sign == "h" ? 16 : sign == "b" ? 2 : sign == "d" ? 10 : 0;
    if (base != 0) return {cell.substr(quote + 2), base};
  }
  for (const auto& [prefix, base] : kPrefixes) {
    std::string_view rest = cell;
    // "0b1" is a number of three digits as well: such a one is hexadecimal.
    if (!take(rest, prefix) || rest.empty()) continue;
    if (rest.back() == '\'' || rest.back() == '"') rest.remove_suffix(1);
    if (base == 2 && rest.find_first_not_of("01") != std::string_view::npos) continue;
    return {rest, base};
  }
  if (cell.size() > 1 && (cell.back() == 'h' || cell.back() == 'H'))
    return {cell.substr(0, cell.size() - 1), 16};
  return {cell, 0};
}

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

/// Properties that the values of a column share.
struct Values {
  explicit Values(const std::vector<std::string_view>& cells) {
    std::set<std::string_view> seen;
    for (const std::string_view cell : cells) {
      if (cell.empty() || is_unknown_level(cell)) continue;
      const Digits digits = digits_of(cell);
      if (count++ == 0) base = digits.base;
      if (digits.base != base) base = 0;
      if (count == 1) first_length = digits.text.size();
      same_length = same_length && first_length == digits.text.size();
      longer += digits.text.size() > first_length ? 1 : 0;
      longest = std::max(longest, digits.text.size());
      bits = bits && has_only(digits.text, "01");
      decimal = decimal && has_only(digits.text, "0123456789");
      seen.insert(digits.text);
      std::uint64_t value = 0;
      if (parse_decimal(digits.text, value)) highest = std::max(highest, value);
    }
    distinct = seen.size();
    most_digits = longest;
    // A few may be damaged.
    if (count < kRowsOfBits || longer <= count / 4) longest = first_length;
  }

  std::size_t count = 0, distinct = 0, first_length = 0, longer = 0, most_digits = 0;
  std::size_t longest = 0;  ///< digits of the values, where many are longer than the first
  unsigned base = 0;        ///< the mark of all of them; 0: they have none, or differ
  bool bits = true, decimal = true, same_length = true;
  std::uint64_t highest = 0;  ///< read as decimal numbers
};

class FormFinder {
 public:
  FormFinder(std::string_view name, const std::vector<std::string_view>& cells)
      : name_(name), values_(cells), range_(bit_range_of(name)) {
    constexpr std::size_t kMostBits = 64;  // of a number in a cell
    if (range_ && range_->bits() > kMostBits) range_.reset();
  }

  CellForm numbers() {
    CellForm form;
    form.kind = CellForm::Kind::number;
    form.base = base();
    const std::size_t bits = range_ ? range_->bits() : bits_of(form.base);
    const std::string stem = range_ ? range_->stem : std::string(name_);
    for (std::size_t bit = 0; bit < bits; ++bit)
      form.channels.push_back(stem + std::to_string(range_ ? range_->number(bit) : bit));
    form.doubt = doubt_;
    return form;
  }
  bool names_bits() const { return range_ && range_->bits() > 1; }

 private:
  unsigned base() {
    if (values_.base != 0) return values_.base;
    if (const unsigned base = base_in_name(name_); base != 0) return base;
    if (range_) {
      const std::size_t bits = range_->bits();
      if (values_.bits && values_.same_length && values_.longest == bits && bits > 1) return 2;
      const std::size_t hexadecimal_digits = (bits + 3) / 4;
      if (values_.same_length && values_.longest == hexadecimal_digits && !is_decimal()) return 16;
      if (values_.decimal && values_.most_digits > hexadecimal_digits) return 10;
    }
    if (values_.bits && values_.same_length && values_.longest > 1 && values_.distinct > 1 &&
        values_.count >= kRowsOfBits) {
      doubt_ = "binary: all its digits in the first rows are 0 or 1";
      return 2;
    }
    if (!is_decimal()) return 16;
    doubt_ = "decimal: the first rows have " + std::to_string(values_.distinct) +
             " values and none of the digits A to F";
    return 10;
  }
  bool is_decimal() const {
    return values_.decimal && values_.distinct >= kDistinctDecimals && values_.longest > 1;
  }
  std::size_t bits_of(unsigned base) const {
    constexpr std::size_t kWidths[] = {8, 16, 20, 24, 32};
    if (base == 2) return values_.longest;
    if (base == 16) return values_.longest * 4;
    const auto needed = static_cast<std::size_t>(std::bit_width(values_.highest));
    for (const std::size_t width : kWidths)
      if (needed <= width) return width;
    return 64;
  }

  std::string_view name_;
  Values values_;
  std::optional<BitRange> range_;
  std::string doubt_;
};

bool is_level(std::string_view cell) {
  return cell == "0" || cell == "1" || is_unknown_level(cell);
}

/// Whether cells of which the first could be a level are numbers: one of a single digit is no
/// level, or many have more digits. A few may be damaged levels.
bool are_numbers(const std::vector<std::string_view>& cells) {
  std::size_t long_ones = 0;
  for (const std::string_view cell : cells) {
    if (is_level(cell) || !parse_cell(cell, 16)) continue;
    if (cell.size() == 1) return true;
    ++long_ones;
  }
  return long_ones > cells.size() / 4;
}

}  // namespace

std::optional<std::uint64_t> parse_cell(std::string_view cell, unsigned base) {
  const Digits digits = digits_of(cell);
  if (digits.base != 0 && digits.base != base) {
    // The digits of a hexadecimal number may look like a mark: 0b1.
    if (base != 16 || digits.base != 2) return std::nullopt;
  }
  const std::string_view text = digits.base == base ? digits.text : cell;
  std::uint64_t value = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value, static_cast<int>(base));
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<bool> real_level(std::string_view cell) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  const std::size_t point = cell.find_first_of(".,");
  if (point != 1 || (cell[0] != '0' && cell[0] != '1')) return std::nullopt;
  std::string_view rest = cell.substr(2);
  rest.remove_prefix(std::min(rest.find_first_not_of('0'), rest.size()));
  const bool exponent =
      rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E') && has_only(rest.substr(1), "+-0");
  if (!rest.empty() && !exponent) return std::nullopt;
  return cell[0] == '1';
}

std::optional<double> real_number(std::string_view cell) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  std::string text(cell);
  std::replace(text.begin(), text.end(), ',', '.');
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Real numbers that rise from row to row: of times, whatever the name says (Keysight's "x-axis").
static bool are_positions(const std::vector<std::string_view>& cells) {
  std::optional<double> last;
  for (const std::string_view cell : cells) {
    const auto value = real_number(cell);
    if (!value || (last && *value <= *last)) return false;
    last = value;
  }
  return cells.size() > 2;
}

bool are_voltages(const std::vector<std::string_view>& cells) {
  std::size_t with_sign = 0, others = 0;
  for (const std::string_view cell : cells) {
    if (cell.empty() || is_unknown_level(cell)) continue;
    if (!real_number(cell)) return false;
    with_sign += cell.find_first_of(".,") != std::string_view::npos ? 1 : 0;
    others += cell != "0" && cell != "1" && !real_level(cell) ? 1 : 0;
  }
  return !are_positions(cells) && with_sign > cells.size() / 4 && others > cells.size() / 4;
}

CellRange range_of(const std::vector<std::string_view>& cells) {
  std::optional<CellRange> range;
  for (const std::string_view cell : cells) {
    const auto value = real_number(cell);
    if (!value) continue;
    if (!range) range = CellRange{*value, *value};
    range->least = std::min(range->least, *value);
    range->greatest = std::max(range->greatest, *value);
  }
  return range.value_or(CellRange{});
}

CellForm form_of_cells(std::string_view name, const std::vector<std::string_view>& cells,
                       bool numbers, bool voltages) {
  const std::string_view first = cells.front();
  CellForm form;
  form.channels.emplace_back(name);
  if (level_in_words(first)) {
    form.kind = CellForm::Kind::word_level;
    return form;
  }
  if (voltages && first.find_first_of(".,") != std::string_view::npos && real_number(first) &&
      !are_positions(cells)) {
    form.kind = CellForm::Kind::voltage;
    return form;
  }
  if (real_level(first)) {
    form.kind = CellForm::Kind::real_level;
    return form;
  }
  FormFinder finder(name, cells);
  if (is_level(first) && !finder.names_bits() && !(numbers && are_numbers(cells))) {
    form.kind = CellForm::Kind::level;
    return form;
  }
  if (!is_level(first) && !parse_cell(first, 16) && digits_of(first).base == 0) {
    form.channels.clear();
    return form;
  }
  return finder.numbers();
}

}  // namespace citcat
