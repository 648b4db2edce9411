#include "cli/record/symbol_trigger.h"

#include <fmt/format.h>

#include <set>

#include "cli/parsing/suggestion.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kSymbolPrefix = "symbol:";

[[noreturn]] void refuse_unknown(const std::string& option, const std::string& name,
                                 const std::vector<SymbolModule>& modules) {
  std::vector<std::string> known;
  for (const SymbolModule& module : modules)
    for (const Symbol& symbol : module.symbols)
      if (symbol.kind == SymbolKind::code) known.push_back(symbol.name);
  throw UsageError(fmt::format("{}: expected the name of code, found {}, which names no code{}{}",
                               option, name, did_you_mean(name, known),
                               known.empty() ? ": there are no symbols; name their file with "
                                               "--symbols, or a kernel that has them with -kernel"
                                             : ""));
}

}  // namespace

bool is_symbol_trigger(const std::string& trigger) { return trigger.rfind(kSymbolPrefix, 0) == 0; }

std::string with_address(const std::string& option, const std::string& trigger,
                         const std::vector<SymbolModule>& modules) {
  if (!is_symbol_trigger(trigger)) return trigger;
  const std::string name = trigger.substr(kSymbolPrefix.size());
  std::set<LinearAddr> places;
  for (const SymbolModule& module : modules)
    for (const Symbol& symbol : module.symbols)
      if (symbol.kind == SymbolKind::code && symbol.name == name) places.insert(symbol.address);
  if (places.empty()) refuse_unknown(option, name, modules);
  if (places.size() > 1) {
    std::string all;
    for (const LinearAddr place : places)
      all += fmt::format("{}address:{:x}", all.empty() ? "" : ", ", place.value);
    throw UsageError(fmt::format(
        "{}: expected the name of one place, found {}, which is {}; say which", option, name, all));
  }
  return fmt::format("address:{:x}", places.begin()->value);
}

}  // namespace citcat
