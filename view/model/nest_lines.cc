#include "view/model/nest_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "debugger/server/run_events.h"
#include "events/position_text.h"
#include "view/model/answer_text.h"

namespace citcat::view {

std::vector<NestLine> nest_lines(const OpenNest& nest) {
  std::vector<NestLine> lines;
  for (const OpenCall& call : nest.calls) lines.push_back({call.at, &call, nullptr});
  for (const InterruptNest::Entered& entered : nest.entered) {
    lines.push_back({entered.at, nullptr, &entered});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const NestLine& a, const NestLine& b) { return a.at > b.at; });
  return lines;
}

Json call_line(RunView& view, const OpenCall& call) {
  Json line = {{"kind", "call"},
               {"moment", position_text(call.at)},
               {"from", linear_text(view, call.call)},
               {"to", linear_text(view, call.target)},
               {"returns_to", linear_text(view, call.return_to)},
               {"slot", linear_text(view, call.slot)}};
  const std::string from = view.place(call.call), to = view.place(call.target);
  if (!from.empty()) line["from_place"] = from;
  if (!to.empty()) line["to_place"] = to;
  return line;
}

Json event_line(RunView& view, const InterruptNest::Entered& entered) {
  Json line = {{"kind", "event"},
               {"moment", position_text(entered.at)},
               {"text", entered_name(entered)},
               {"from", linear_text(view, entered.from)}};
  const std::string place = view.place(entered.from);
  if (!place.empty()) line["from_place"] = place;
  line["address_space"] = fmt::format("{:08x}", entered.cr3);
  return line;
}

}  // namespace citcat::view
