#include "events/names/symbol_module.h"

#include <algorithm>
#include <string_view>
#include <tuple>

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

}  // namespace citcat
