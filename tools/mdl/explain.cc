#include "tools/mdl/explain.h"

#include <algorithm>

#include "events/names/symbol_module.h"

namespace citcat::mdl {

namespace {

std::uint64_t matching_symbols(const Attachment& a, const Symbols& symbols) {
  std::uint64_t count = 0;
  for (const SymbolModule& module : symbols.modules()) {
    count += static_cast<std::uint64_t>(std::count_if(
        module.symbols.begin(), module.symbols.end(),
        [&](const Symbol& s) { return s.kind == SymbolKind::code && a.has(module.name, s.name); }));
  }
  return count;
}

tools::Cell points_of(const Attachment& a, const Symbols& symbols) {
  if (!a.is_of_procedures()) return std::string(point_row(a.point).where);
  if (symbols.empty()) return std::string("no symbols are known");
  return matching_symbols(a, symbols);
}

std::string place_of(const Attachment& a) {
  const PointRow& row = point_row(a.point);
  if (!a.is_of_procedures()) return std::string(row.object) + "." + row.field;
  return a.procedures.text() + " ." + row.field;
}

}  // namespace

void explain(const Library& library, const std::vector<MetricRequest>& requests,
             const Symbols& symbols, tools::Report& report) {
  tools::Table& table = report.table("points", "Points",
                                     {{"metric", "metric", ""},
                                      {"focus", "focus", ""},
                                      {"base", "base", ""},
                                      {"code", "code of", ""},
                                      {"point", "where", ""},
                                      {"points", "points", ""},
                                      {"cost", "at most, each time", "steps"}});
  for (const MetricRequest& request : requests) {
    const Plan plan = make_plan(library, request);
    const std::string base = plan.base == Base::counter         ? "counter"
                             : plan.base == Base::process_timer ? "processTimer"
                             : plan.base == Base::wall_timer    ? "wallTimer"
                                                                : "void";
    for (const Attachment& a : plan.attachments) {
      table.row({plan.metric, plan.focus.text(), base,
                 std::string(a.of_constraint ? "constraint" : "metric"), place_of(a),
                 points_of(a, symbols), a.cost()});
    }
  }
}

}  // namespace citcat::mdl
