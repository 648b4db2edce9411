#include "events/names/symbol_map.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace citcat {
namespace {

/// Most kernel modules that a map may name; a kernel with all its drivers has some 6000.
constexpr std::size_t kMaxModules = std::size_t{1} << 16;

struct Row {
  std::uint64_t address = 0;
  char letter = 0;
  std::string_view name, module;  ///< the latter empty for none
};

/// Takes what is before the next blank off `rest`, and the blanks.
std::string_view next_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t", end), rest.size()));
  return word;
}

Row parse_row(std::string_view line, const LineReader& lines) {
  std::string_view rest = line;
  Row row;
  const bool has_address = parse_hexadecimal(next_word(rest), row.address);
  const std::string_view letter = next_word(rest);
  row.name = next_word(rest);
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']') {
    row.module = rest.substr(1, rest.size() - 2);
    rest = {};
  }
  if (!has_address || letter.size() != 1 || row.name.empty() || !rest.empty()) {
    lines.fail("expected \"ADDRESS LETTER NAME\", and perhaps \"[MODULE]\", found \"" +
               shown(line) + '"');
  }
  if (row.name.size() > kMaxSymbolName || row.module.size() > kMaxSymbolName) {
    lines.fail("expected a name of at most " + std::to_string(kMaxSymbolName) +
               " bytes, found a longer one");
  }
  row.letter = letter[0];
  return row;
}

/// nm(1): upper case is global. Nullopt for what is no place in memory.
std::optional<Symbol> symbol_of(const Row& row, const LineReader& lines) {
  static constexpr std::string_view kCode = "tTwWi", kData = "bBdDgGrRsSuvVnNp", kNoPlace = "aAU?-";
  const bool is_code = kCode.find(row.letter) != std::string_view::npos;
  if (!is_code && kData.find(row.letter) == std::string_view::npos) {
    if (kNoPlace.find(row.letter) != std::string_view::npos) return std::nullopt;
    lines.fail(std::string("expected a letter as nm prints it, found \"") + row.letter + '"');
  }
  if (row.address > kLastSymbolAddress) {
    lines.fail("expected an address of 32 bits, found \"" + std::string(row.name) +
               "\" beyond: these are the names of another machine");
  }
  Symbol symbol;
  symbol.name = row.name;
  symbol.address.value = static_cast<decltype(LinearAddr::value)>(row.address);
  symbol.kind = is_code ? SymbolKind::code : SymbolKind::data;
  const bool weak = std::string_view("wWvV").find(row.letter) != std::string_view::npos;
  const bool global = std::isupper(static_cast<unsigned char>(row.letter)) != 0;
  symbol.binding = weak     ? SymbolBinding::weak
                   : global ? SymbolBinding::global
                            : SymbolBinding::local;
  return symbol;
}

}  // namespace

std::vector<SymbolModule> read_symbol_map(LineReader& lines, const std::string& name) {
  std::map<std::string, SymbolModule, std::less<>> modules;  // in this order, whatever the file's
  std::size_t symbols = 0;
  bool some_address = false, some_code = false;
  for (std::string_view line; lines.next(line);) {
    // nm leaves the address of what is undefined blank.
    if (trimmed(line).empty() || line.front() == ' ') continue;
    const Row row = parse_row(line, lines);
    std::optional<Symbol> symbol = symbol_of(row, lines);
    if (!symbol) continue;
    if (++symbols > kMaxSymbols) lines.fail("expected at most 2^22 symbols, found more");
    some_address = some_address || row.address != 0;
    some_code = some_code || symbol->kind == SymbolKind::code;
    auto at = modules.find(row.module);
    if (at == modules.end()) {
      if (modules.size() == kMaxModules) lines.fail("expected at most 2^16 modules, found more");
      at = modules.emplace(row.module, SymbolModule{}).first;
      at->second.name = row.module.empty() ? name : std::string(row.module);
    }
    at->second.symbols.push_back(std::move(*symbol));
  }
  if (symbols != 0 && !some_address) {
    lines.fail(
        "expected addresses, found only zeros: the kernel hides them from everybody but root "
        "(kernel.kptr_restrict in sysctl(8))");
  }
  if (!some_code) lines.fail("expected names of code, found none");
  std::vector<SymbolModule> result;
  for (auto& [key, module] : modules) {
    settle_symbols(module);
    result.push_back(std::move(module));
  }
  return result;
}

}  // namespace citcat
