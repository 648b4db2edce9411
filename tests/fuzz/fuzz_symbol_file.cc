// load_symbol_file() on any bytes: ELF, or a list as System.map and kallsyms are. What is
// understood is looked up.

#include <cstdint>

#include "events/names/symbol_file.h"
#include "events/names/symbols.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(symbol_file) {
  const citcat::fuzz::FileInMemory file({data, size});
  for (const auto base : {std::optional<citcat::LinearAddr>{}, {citcat::LinearAddr{0x08048000}}}) {
    try {
      const citcat::Symbols symbols(
          citcat::load_symbol_file(citcat::SymbolFileName{file.path(), base, {}}));
      for (const citcat::SymbolModule& module : symbols.modules()) {
        for (const citcat::Symbol& symbol : module.symbols) {
          const auto place = symbols.find(symbol.address);
          CITCAT_ASSERT(place && place->offset <= symbol.address.value);
          citcat::place_name(*place);
        }
      }
    } catch (const citcat::FormatError&) {
    } catch (const citcat::UsageError&) {
    }
  }
  return 0;
}
