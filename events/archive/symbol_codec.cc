#include "events/archive/symbol_codec.h"

#include <span>
#include <string>

#include "formats/io/byte_writer.h"
#include "formats/io/column.h"

namespace citcat {
namespace {

constexpr std::uint64_t kBindingUnit = 2;  ///< of a row's kind: kind + 2 * binding
constexpr std::uint64_t kLastSymbolKind =
    static_cast<std::uint64_t>(SymbolBinding::local) * kBindingUnit +
    static_cast<std::uint64_t>(SymbolKind::data);

std::uint64_t kind_of(const Symbol& symbol) {
  return static_cast<std::uint64_t>(symbol.binding) * kBindingUnit +
         static_cast<std::uint64_t>(symbol.kind);
}

std::vector<std::uint8_t> encode_rows(const SymbolModule& module, std::span<const Symbol> symbols,
                                      bool goes_on) {
  ByteWriter out;
  out.u8(goes_on ? 1 : 0);
  out.string(module.name);
  out.string(module.process);
  out.varint(symbols.size());
  const auto column = [&](auto&& value_of) {
    std::vector<std::uint64_t> values;
    for (const Symbol& symbol : symbols) values.push_back(value_of(symbol));
    write_column(out, values);
  };
  column([](const Symbol& s) { return std::uint64_t{s.address.value}; });
  column([](const Symbol& s) { return s.size; });
  column(kind_of);
  column([](const Symbol& s) { return std::uint64_t{s.name.size()}; });
  for (const Symbol& symbol : symbols) {
    out.bytes({reinterpret_cast<const std::uint8_t*>(symbol.name.data()), symbol.name.size()});
  }
  return out.take();
}

/// How many symbols from `begin` on go into one chunk.
std::size_t rows_from(const std::vector<Symbol>& symbols, std::size_t begin) {
  std::size_t bytes = 0, end = begin;
  while (end < symbols.size() && end - begin < kSymbolChunkRows && bytes < kSymbolChunkNameBytes) {
    bytes += symbols[end++].name.size();
  }
  return end - begin;
}

}  // namespace

void encode_symbols(const SymbolModule& module,
                    const std::function<void(std::vector<std::uint8_t>)>& add) {
  const std::span<const Symbol> symbols(module.symbols);
  for (std::size_t begin = 0; begin < symbols.size();) {
    const std::size_t rows = rows_from(module.symbols, begin);
    add(encode_rows(module, symbols.subspan(begin, rows), begin != 0));
    begin += rows;
  }
}

void decode_symbols(ByteReader& in, std::vector<SymbolModule>& modules) {
  const bool goes_on = in.count("whether the module goes on", 1) != 0;
  SymbolModule module;
  module.name = in.string("module", kMaxSymbolName);
  module.process = in.string("process", kMaxSymbolName);
  // A symbol has a name of at least one byte.
  const std::size_t rows = in.count("symbols", std::min(kMaxSymbols, in.remaining()));
  const auto addresses = read_column(in, rows, "addresses of symbols");
  const auto sizes = read_column(in, rows, "sizes of symbols");
  const auto kinds = read_column(in, rows, "kinds of symbols");
  const auto lengths = read_column(in, rows, "lengths of symbols' names");
  for (std::size_t i = 0; i < rows; ++i) {
    if (addresses[i] > kLastSymbolAddress || kinds[i] > kLastSymbolKind || lengths[i] == 0 ||
        lengths[i] > kMaxSymbolName) {
      in.fail("expected symbols of known kinds at addresses of 32 bits, found another");
    }
    const auto name = in.bytes(lengths[i], "name of a symbol");
    Symbol symbol;
    symbol.name.assign(name.begin(), name.end());
    symbol.address.value = static_cast<decltype(LinearAddr::value)>(addresses[i]);
    symbol.size = sizes[i];
    symbol.kind = static_cast<SymbolKind>(kinds[i] % kBindingUnit);
    symbol.binding = static_cast<SymbolBinding>(kinds[i] / kBindingUnit);
    module.symbols.push_back(std::move(symbol));
  }
  in.expect_end("the symbols");
  if (!goes_on) return modules.push_back(std::move(module));
  if (modules.empty() || modules.back().name != module.name ||
      modules.back().process != module.process) {
    in.fail("expected symbols that go on with those before, found those of " +
            (module.name.empty() ? "a module without a name" : module.name));
  }
  std::vector<Symbol>& all = modules.back().symbols;
  all.insert(all.end(), std::make_move_iterator(module.symbols.begin()),
             std::make_move_iterator(module.symbols.end()));
}

}  // namespace citcat
