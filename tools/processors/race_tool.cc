#include "tools/processors/race_tool.h"

#include <algorithm>
#include <utility>

#include "events/position_text.h"
#include "tools/processors/code_name.h"

namespace citcat::tools {
namespace {

void join(std::vector<std::uint64_t>& into, const std::vector<std::uint64_t>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

RaceTool::RaceTool(std::size_t processors, std::size_t top, const Symbols& symbols,
                   bool knows_order)
    : processors_(processors),
      top_(top),
      knows_order_(knows_order),
      clocks_(processors, Clock(processors)),
      calls_(processors),
      symbols_(symbols) {
  for (std::size_t p = 0; p < processors; ++p) clocks_[p][p] = 1;
}

RaceTool::Place RaceTool::place_of(const ProcessorAccess& a) const {
  return {a.processor, clocks_[a.processor][a.processor], a.instruction, a.position,
          calls_.now(a.processor)};
}

/// The calls that a processor was in, the innermost first.
std::string RaceTool::calls_of(const Place& place) const {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (const LinearAddr from : calls_.calls(place.calls, kMost))
    text += (text.empty() ? "" : " ") + code_name(symbols_, from);
  return text;
}

/// A place that locked instructions use: who reads it comes after who wrote it.
void RaceTool::synchronize(Dword& dword, const ProcessorAccess& a) {
  Clock& own = clocks_[a.processor];
  if (dword.synchronized.empty()) dword.synchronized.resize(processors_);
  if (!a.write || a.locked) join(own, dword.synchronized);
  if (!a.write) return;
  join(dword.synchronized, own);
  ++own[a.processor];
}

void RaceTool::compare(const Place& before, const ProcessorAccess& a, bool before_writes) {
  if (before.processor == kNobody || before.processor == a.processor) return;
  if (before.time <= clocks_[a.processor][before.processor]) return;  // ordered
  Race& race = races_[std::minmax(before.instruction, a.instruction)];
  if (race.times++ != 0) return;
  race.address = a.address;
  race.both_write = before_writes && a.write;
  race.first = before;
  race.second = place_of(a);
}

void RaceTool::access(const ProcessorAccess& a) {
  if (a.kind == AccessKind::walk) return;  // no instruction's own
  constexpr std::uint32_t kDwordBytes = 4;
  const std::uint64_t begin = a.address.value / kDwordBytes;
  const std::uint64_t end = (a.address.value + a.size - 1) / kDwordBytes;
  for (std::uint64_t number = begin; number <= end; ++number) {
    Dword& dword = dwords_[number];
    if (a.locked || !dword.synchronized.empty()) {
      synchronize(dword, a);
      continue;
    }
    compare(dword.write, a, true);
    if (!a.write) {
      const auto own = std::find_if(dword.reads.begin(), dword.reads.end(),
                                    [&](const Place& p) { return p.processor == a.processor; });
      if (own != dword.reads.end()) {
        *own = place_of(a);
      } else {
        dword.reads.push_back(place_of(a));
      }
      continue;
    }
    for (const Place& read : dword.reads) compare(read, a, false);
    dword.reads.clear();
    dword.write = place_of(a);
  }
}

void RaceTool::called(std::uint8_t processor, LinearAddr from) { calls_.called(processor, from); }

void RaceTool::returned(std::uint8_t processor) { calls_.returned(processor); }

void RaceTool::message(std::uint8_t from, std::uint8_t vector) {
  if (from >= processors_) return;
  Clock& sent = sent_[vector];
  if (sent.empty()) sent.resize(processors_);
  join(sent, clocks_[from]);
  ++clocks_[from][from];
}

void RaceTool::interrupted(std::uint8_t processor, std::uint8_t vector) {
  join(clocks_[processor], sent_[vector]);
}

void RaceTool::report(Report& out) const {
  std::vector<const Race*> all;
  std::uint64_t times = 0;
  for (const auto& [pair, race] : races_) {
    all.push_back(&race);
    times += race.times;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Race* a, const Race* b) { return a->times > b->times; });
  out.value("pairs", "pairs of instructions that race",
            std::uint64_t{knows_order_ ? all.size() : 0});
  out.value("times", "times that one did", std::uint64_t{knows_order_ ? times : 0});
  if (!knows_order_)
    out.value("doubtful", "pairs that may race: their order is not known",
              std::uint64_t{all.size()});
  Table& table = out.table("races", "conflicting accesses that nothing orders",
                           {{"address", "address", ""},
                            {"kind", "kind", ""},
                            {"times", "times", ""},
                            {"first", "first", ""},
                            {"first_instruction", "instruction", ""},
                            {"first_calls", "called from", ""},
                            {"second", "then", ""},
                            {"second_instruction", "instruction", ""},
                            {"second_calls", "called from", ""}});
  const auto position = [](const Place& place) {
    return std::to_string(place.processor) + ":" + position_text(place.position);
  };
  for (std::size_t i = 0; i < std::min(top_, all.size()); ++i) {
    const Race& race = *all[i];
    const std::string kind = race.both_write ? "both write" : "one writes";
    table.row({hexadecimal(race.address.value), kind + (knows_order_ ? "" : ", order not known"),
               race.times, position(race.first), code_place(symbols_, race.first.instruction),
               calls_of(race.first), position(race.second),
               code_place(symbols_, race.second.instruction), calls_of(race.second)});
  }
}

}  // namespace citcat::tools
