#include "events/names/symbol_module.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "formats/io/error.h"

namespace citcat {
namespace {

auto preference(const Symbol& symbol) {
  const std::size_t underscores = std::min(symbol.name.find_first_not_of('_'), symbol.name.size());
  return std::tuple(symbol.address, symbol.kind, symbol.binding, underscores, symbol.name.size(),
                    std::string_view(symbol.name), symbol.size);
}

}  // namespace

void settle_symbols(SymbolModule& module) {
  std::vector<Symbol>& symbols = module.symbols;
  std::sort(symbols.begin(), symbols.end(),
            [](const Symbol& a, const Symbol& b) { return preference(a) < preference(b); });
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
}

void move_symbols(SymbolModule& module, std::int64_t by, const std::string& source) {
  for (Symbol& symbol : module.symbols) {
    const std::uint64_t moved = symbol.address.value + static_cast<std::uint64_t>(by);
    if (moved > kLastSymbolAddress) {
      throw UsageError(source + ": \"" + symbol.name + "\" would lie beyond the last address");
    }
    symbol.address.value = static_cast<decltype(LinearAddr::value)>(moved);
  }
}

}  // namespace citcat
