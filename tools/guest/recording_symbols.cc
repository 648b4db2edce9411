#include "tools/guest/recording_symbols.h"

#include <iterator>

#include "events/names/symbol_file.h"

namespace citcat::tools {

Symbols known_symbols(const RecordingFile& file, const std::vector<std::string>& files) {
  std::vector<SymbolModule> modules = load_symbols(files);
  std::vector<SymbolModule> kept = file.symbols();
  modules.insert(modules.end(), std::make_move_iterator(kept.begin()),
                 std::make_move_iterator(kept.end()));
  return Symbols(std::move(modules));
}

}  // namespace citcat::tools
