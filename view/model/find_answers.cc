// Questions that look for something: names, texts in memory, calls of a procedure, and the bus.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>

#include "events/names/demangle.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "view/model/answer_text.h"

namespace citcat::view {

namespace {

constexpr std::size_t kMostFound = 200;

Json symbols_like(const RunView& view, const std::string& text) {
  Json list = Json::array();
  const auto add = [&](const SymbolModule& module, const Symbol& symbol) {
    list.push_back({{"name", demangled(symbol.name)},
                    {"module", module.name},
                    {"address", linear_text(view, symbol.address)},
                    {"size", symbol.size},
                    {"code", symbol.kind == SymbolKind::code}});
  };
  // Those that begin with it come first.
  for (const bool begins : {true, false}) {
    for (const SymbolModule& module : view.symbols().modules()) {
      for (const Symbol& symbol : module.symbols) {
        if (list.size() >= kMostFound) return list;
        const std::size_t at = demangled(symbol.name).find(text);
        if (at != std::string::npos && (at == 0) == begins) add(module, symbol);
      }
    }
  }
  return list;
}

/// Where the bytes of a text lie in physical memory, as far as they lie within one frame.
Json text_in_memory(const RunView& view, const std::string& text) {
  Json list = Json::array();
  const Memory& memory = view.machine().memory();
  for (const FrameNumber page : memory.mapped_pages()) {
    if (!memory.has_defined(page)) continue;
    const auto* const bytes =
        reinterpret_cast<const char*>(memory.host(PhysAddr{page * kPageSize}));
    const std::string_view frame(bytes, kPageSize);
    for (std::size_t at = frame.find(text); at != std::string_view::npos;
         at = frame.find(text, at + 1)) {
      const PhysAddr found{page * kPageSize + static_cast<std::uint32_t>(at)};
      if (!memory.is_defined(found, static_cast<std::uint32_t>(text.size()))) continue;
      if (list.size() >= kMostFound) return list;
      list.push_back({{"physical", physical_text(view, found)}});
    }
  }
  return list;
}

/// Names and texts.
Json answer_find(RunView& view, const Query& query) {
  const std::string text = query.required("text");
  if (text.empty() || text.size() > 256) throw UsageError("text: expected 1 to 256 bytes");
  Json json = {{"symbols", symbols_like(view, text)}};
  if (query.has("at")) {
    view.go_to(query);
    json["memory"] = text_in_memory(view, text);
  }
  return json;
}

// ---- calls of a procedure

LinearAddr procedure(const RunView& view, const Query& query) {
  const std::string name = query.required("function");
  if (const auto named = view.symbols().named(name)) return named->symbol->address;
  for (const SymbolModule& module : view.symbols().modules()) {
    for (const Symbol& symbol : module.symbols) {
      if (demangled(symbol.name) == name) return symbol.address;
    }
  }
  const auto address = parse_hex(name);
  if (!address) {
    throw UsageError("function: expected a name or a hexadecimal address, found '" + name + "'");
  }
  return LinearAddr{*address};
}

/// Where an instruction runs the n-th time, from the beginning or from a moment on.
Json answer_nth(RunView& view, const Query& query) {
  const LinearAddr at = procedure(view, query);
  const std::uint64_t wanted = query.number("n", 1, 1'000'000'000);
  if (wanted == 0) throw UsageError("n: expected 1 or more, found '0'");
  if (query.has("at")) {
    view.go_to(query);
  } else {
    view.go_to(WantedMoment{{}, std::nullopt});
  }
  StopSet stops;
  stops.code.push_back(at);
  ReplayTimeline& timeline = view.timeline();
  std::uint64_t met = !query.has("at") && view.machine().next_linear() == at ? 1 : 0;
  using Why = ReplayTimeline::Stop::Why;
  Why why = Why::hit;
  while (met < wanted && why == Why::hit && !view.timed_out()) {
    why = timeline.run_to_stop(stops, view.limit()).why;
    if (why == Why::hit) ++met;
  }
  Json json = {{"found", met == wanted}, {"times", met}, {"function", linear_text(view, at)}};
  if (met != wanted) {
    json["why"] = why == Why::end ? fmt::format("it runs {} times", met)
                                  : fmt::format("the search took too long, after {} times", met);
    return json;
  }
  view.settle_here();
  json.update(here(view));
  return json;
}

// ---- the bus

/// In a capture without counts: the first transaction that the replay has not reached, as far as
/// its schedule tells.
std::uint64_t next_transaction(const Recording& recording, Position here) {
  std::uint64_t next = 0;
  const auto passed = [&](bool known, Position at, std::uint64_t transaction) {
    if (known && at < here) next = std::max(next, transaction + 1);
  };
  for (const Interrupt& i : recording.interrupts) {
    passed(i.position_known, i.position, i.transaction);
  }
  for (const IoRead& r : recording.io_reads) passed(r.position_known, r.position, r.transaction);
  for (const ExternalWrite& w : recording.external_writes) {
    passed(w.position_known, w.position, w.transaction);
  }
  return next;
}

struct BusAround {
  std::deque<BusTransaction> before;
  std::vector<BusTransaction> after;
  bool counted = false;  ///< they have positions
  bool whole = true;     ///< the search was not ended
};

BusAround bus_around(RunView& view, Position here, std::size_t count) {
  BusAround bus;
  const std::uint64_t next = next_transaction(view.file().recording(), here);
  const auto reader = view.file().evidence();
  std::uint64_t read = 0;
  for (BusTransaction t; bus.after.size() < count && reader->next(t);) {
    constexpr std::uint64_t kLook = 0xffff;
    if ((++read & kLook) == 0 && view.timed_out()) {
      bus.whole = false;
      break;
    }
    bus.counted |= t.has(kPositionKnown);
    const bool passed = t.has(kPositionKnown) ? t.position < here : t.index < next;
    if (passed || (bus.after.empty() && bus.counted && !t.has(kPositionKnown))) {
      bus.before.push_back(t);
      if (bus.before.size() > count) bus.before.pop_front();
    } else {
      bus.after.push_back(t);
    }
  }
  return bus;
}

Json transaction_json(const RunView& view, const BusTransaction& t, bool passed) {
  Json json = {{"index", t.index}, {"operation", bus_op_name(t.op)}, {"passed", passed}};
  if (t.has(kPositionKnown)) json["position"] = position_text(t.position);
  if (t.has(kClockKnown)) json["clock"] = t.clock;
  if (t.is_memory() || t.op == BusOp::instruction_start) {
    json["address"] = physical_text(view, t.address);
  } else if (t.op == BusOp::io_read || t.op == BusOp::io_write) {
    json["address"] = fmt::format("{:04x}", t.address.value);
  }
  // The data of what was read is not kept: the image and the schedule have it.
  const bool has_data = t.op != BusOp::code_read && t.op != BusOp::data_read;
  if (t.size != 0) json["size"] = t.size;
  if (t.size != 0 && has_data) json["data"] = bytes_text(t.bytes());
  return json;
}

/// Transactions of the capture before and after a moment.
Json answer_bus(RunView& view, const Query& query) {
  const std::uint64_t count = query.number("count", 20, 500);
  const Moment moment = view.go_to(query);
  Json json = here(view);
  if (view.file().meta().evidence != EvidenceMode::full) {
    json["why"] = "the archive holds digests in place of the evidence";
    return json;
  }
  const BusAround bus = bus_around(view, moment.position, static_cast<std::size_t>(count));
  if (!bus.whole) {
    json["why"] = kSearchTookTooLong;
    return json;
  }
  json["counted"] = bus.counted;
  json["transactions"] = Json::array();
  for (const BusTransaction& t : bus.before) {
    json["transactions"].push_back(transaction_json(view, t, true));
  }
  for (const BusTransaction& t : bus.after) {
    json["transactions"].push_back(transaction_json(view, t, false));
  }
  json["command"] = fmt::format("citcat verify {} --account --at {}", view.options().name,
                                moment.position.instruction);
  return json;
}

}  // namespace

std::vector<Question> find_questions() {
  return {{"find", {"text", "at"}, answer_find},
          {"nth", {"function", "n", "at"}, answer_nth},
          {"bus", {"at", "count"}, answer_bus}};
}

}  // namespace citcat::view
