// The payload of a SYMS chunk, below its hash, behind another one. What is understood is written
// and read again.

#include <cstdint>

#include "events/archive/symbol_codec.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(symbols) {
  try {
    std::vector<citcat::SymbolModule> modules{{"vmlinux", "", {}}}, again;
    citcat::ByteReader in({data, size}, "input");
    citcat::decode_symbols(in, modules);
    for (citcat::SymbolModule& module : modules) {
      if (module.symbols.empty()) continue;
      std::vector<citcat::SymbolModule> read;
      citcat::encode_symbols(module, [&](const std::vector<std::uint8_t>& payload) {
        citcat::ByteReader written(payload, "written");
        citcat::decode_symbols(written, read);
      });
      CITCAT_ASSERT(read.size() == 1 && read[0] == module);
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
