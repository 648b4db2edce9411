#include "tools/processors/code_name.h"

#include <optional>

#include "tools/host/report.h"

namespace citcat::tools {

std::string code_name(const Symbols& symbols, LinearAddr at) {
  const std::optional<SymbolPlace> place = symbols.find(at);
  return place ? place_name(*place) : hexadecimal(at.value);
}

std::string code_place(const Symbols& symbols, LinearAddr at) {
  const std::optional<SymbolPlace> place = symbols.find(at);
  return hexadecimal(at.value) + (place ? " " + place_name(*place) : "");
}

}  // namespace citcat::tools
