#include "events/names/symbols.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "events/names/demangle.h"

namespace citcat {
namespace {

bool is_like(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

LinearAddr linear(std::uint64_t value) { return {static_cast<decltype(LinearAddr::value)>(value)}; }

/// Symbols that say how long they are and hold the place up to which a module was looked through,
/// the innermost on top.
class Nest {
 public:
  explicit Nest(const SymbolModule& module) : module_(module) {}

  bool empty() const { return open_.empty(); }
  std::size_t innermost() const { return open_.back(); }
  std::uint64_t last() const { return symbol_last(module_, open_.back()); }
  /// Goes in where it is shorter than what is open already: symbols of one address, the preferred
  /// one first, leave the shortest of them on top.
  void open(std::size_t symbol) {
    const auto at = std::upper_bound(open_.begin(), open_.end(), symbol, [&](auto a, auto b) {
      return symbol_last(module_, a) > symbol_last(module_, b);
    });
    const bool same = at != open_.begin() && is_same(*(at - 1), symbol);
    if (!same) open_.insert(at, symbol);
  }
  void close_innermost() { open_.pop_back(); }

 private:
  bool is_same(std::size_t a, std::size_t b) const {
    return module_.symbols[a].address == module_.symbols[b].address &&
           symbol_last(module_, a) == symbol_last(module_, b);
  }
  const SymbolModule& module_;
  std::vector<std::size_t> open_;  ///< by descending end
};

}  // namespace

std::string place_name(const SymbolPlace& place) {
  const std::string name = demangled(place.symbol->name);
  return place.offset == 0 ? name : fmt::format("{}+{:#x}", name, place.offset);
}

std::uint64_t symbol_last(const SymbolModule& module, std::size_t symbol) {
  const Symbol& it = module.symbols[symbol];
  const std::uint64_t begin = it.address.value;
  if (it.size != 0) return begin + std::min(it.size - 1, kLastSymbolAddress - begin);
  const auto next = std::upper_bound(
      module.symbols.begin() + static_cast<std::ptrdiff_t>(symbol), module.symbols.end(),
      it.address, [](LinearAddr at, const Symbol& other) { return at < other.address; });
  return next == module.symbols.end() ? begin | kPageMask : next->address.value - 1;
}

Symbols::Symbols(std::vector<SymbolModule> modules) : modules_(std::move(modules)) {
  for (SymbolModule& module : modules_) {
    settle_symbols(module);
    stretches_.push_back(stretches_of(module));
  }
}

Symbols::Stretches Symbols::stretches_of(const SymbolModule& module) {
  Stretches stretches;
  const auto begins = [&stretches](std::uint64_t at, std::size_t symbol) {
    if (!stretches.empty() && stretches.back().begin == at) stretches.pop_back();
    if (stretches.empty() || stretches.back().symbol != symbol) stretches.push_back({at, symbol});
  };
  Nest nest(module);
  // Closes what ends before `limit`; what lies after a symbol that says where it ends is nobody's.
  const auto close_before = [&](std::uint64_t limit) {
    while (!nest.empty() && nest.last() < limit) {
      const std::uint64_t end = nest.last() + 1;
      nest.close_innermost();
      begins(end, nest.empty() ? kNobody : nest.innermost());
    }
  };
  const std::vector<Symbol>& symbols = module.symbols;
  for (std::size_t first = 0, i = 0; first < symbols.size(); first = i) {
    const std::uint64_t at = symbols[first].address.value;
    close_before(at);
    for (i = first; i < symbols.size() && symbols[i].address == symbols[first].address; ++i) {
      if (symbols[i].size != 0) nest.open(i);
    }
    if (!nest.empty()) {
      begins(at, nest.innermost());
      continue;
    }
    begins(at, first);
    const std::uint64_t last = symbol_last(module, first);
    if (last != kLastSymbolAddress) begins(last + 1, kNobody);
  }
  close_before(kLastSymbolAddress);
  return stretches;
}

std::optional<SymbolPlace> Symbols::find_in(std::size_t module, LinearAddr at) const {
  const Stretches& stretches = stretches_[module];
  auto behind = std::upper_bound(stretches.begin(), stretches.end(), std::uint64_t{at.value},
                                 [](std::uint64_t a, const Stretch& s) { return a < s.begin; });
  if (behind == stretches.begin()) return std::nullopt;
  const std::size_t symbol = (--behind)->symbol;
  if (symbol == kNobody) return std::nullopt;
  const Symbol& found = modules_[module].symbols[symbol];
  return SymbolPlace{&modules_[module], &found, at.value - found.address.value};
}

std::optional<SymbolPlace> Symbols::find(LinearAddr at, std::string_view process) const {
  for (const bool own : {true, false}) {
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      const std::string& whose = modules_[i].process;
      if (own ? whose.empty() || whose != process : !whose.empty()) continue;
      if (const auto place = find_in(i, at)) return place;
    }
  }
  return std::nullopt;
}

std::vector<SymbolRange> Symbols::code(const std::string& module,
                                       const std::string& procedure) const {
  std::vector<SymbolRange> ranges;
  for (const SymbolModule& m : modules_) {
    if (!is_like(m.name, module)) continue;
    for (std::size_t i = 0; i < m.symbols.size(); ++i) {
      const Symbol& symbol = m.symbols[i];
      if (symbol.kind != SymbolKind::code) continue;
      if (!is_like(symbol.name, procedure) && !is_like(demangled(symbol.name), procedure)) continue;
      ranges.push_back({&m, &symbol, symbol.address, linear(symbol_last(m, i))});
    }
  }
  return ranges;
}

std::optional<SymbolPlace> Symbols::named(std::string_view name) const {
  for (const SymbolModule& module : modules_) {
    for (const Symbol& symbol : module.symbols) {
      if (symbol.name == name) return SymbolPlace{&module, &symbol, 0};
    }
  }
  return std::nullopt;
}

}  // namespace citcat
