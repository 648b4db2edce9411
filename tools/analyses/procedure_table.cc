#include "tools/analyses/procedure_table.h"

#include "tools/host/report.h"

namespace citcat::tools {

ProcedureNumber ProcedureTable::entry(Entry entry, std::optional<LinearAddr> begin) {
  const auto [at, added] =
      numbers_.try_emplace(std::move(entry), static_cast<ProcedureNumber>(all_.size()));
  if (added) {
    all_.push_back(at->first);
    begins_.push_back(begin);
  }
  return at->second;
}

ProcedureTable::Place ProcedureTable::at(LinearAddr address, const Context& context) {
  const auto code = names_ != nullptr ? names_->procedure(address, context) : std::nullopt;
  if (!code) return {};
  // GCC's names of parts that are seldom executed.
  const std::size_t cold = code->procedure.rfind(".cold");
  Place place;
  place.named = true;
  place.begins = code->begin == address && cold == std::string::npos;
  place.procedure = entry({code->module, code->procedure.substr(0, cold)},
                          cold == std::string::npos ? std::optional(code->begin) : std::nullopt);
  return place;
}

ProcedureNumber ProcedureTable::called(LinearAddr address, const Context& context) {
  const Place place = at(address, context);
  if (place.named) return place.procedure;
  return entry({"", hexadecimal(address.value)}, address);
}

}  // namespace citcat::tools
