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
                   const LockedPlaces& locked, bool knows_order)
    : processors_(processors),
      top_(top),
      knows_order_(knows_order),
      locked_(locked),
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
void RaceTool::acquire(const ProcessorAccess& a, PhysAddr byte) {
  if (a.write && !a.locked) return;
  const auto its = synchronized_.find(byte.value);
  if (its != synchronized_.end()) join(clocks_[a.processor], its->second);
}

void RaceTool::leave(const ProcessorAccess& a, PhysAddr byte) {
  Clock& its = synchronized_[byte.value];
  its.resize(processors_);
  join(its, clocks_[a.processor]);
}

void RaceTool::compare(const Place& before, const ProcessorAccess& a, bool before_writes) {
  if (before.processor == kNobody || before.processor == a.processor) return;
  if (before.time <= clocks_[a.processor][before.processor]) return;  // ordered
  Race& race = races_[std::minmax(before.instruction, a.instruction)];
  // Two accesses race once, however many bytes they have in common.
  const std::pair<const Race*, Position> both{&race, before.position};
  if (std::find(found_.begin(), found_.end(), both) != found_.end()) return;
  found_.push_back(both);
  if (race.times++ != 0) return;
  race.address = a.address;
  race.both_write = before_writes && a.write;
  race.first = before;
  race.second = place_of(a);
}

/// Calls `take` with the cells of some bytes of a word, which it cuts where these begin and end.
template <typename Take>
void RaceTool::for_cells(Word& word, std::uint32_t begin, std::uint32_t end, Take take) {
  for (const std::uint32_t at : {begin, end}) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (at <= word[i].begin || at >= word[i].end) continue;
      Cell rest = word[i];
      rest.begin = word[i].end = static_cast<std::uint8_t>(at);
      word.insert(word.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
    }
  }
  std::size_t i = 0;
  while (i < word.size() && word[i].begin < begin) ++i;
  for (std::uint32_t at = begin; at < end; at = word[i++].end) {
    const std::uint32_t next = i < word.size() ? std::min<std::uint32_t>(word[i].begin, end) : end;
    if (next != at) {
      Cell cell;
      cell.begin = static_cast<std::uint8_t>(at);
      cell.end = static_cast<std::uint8_t>(next);
      word.insert(word.begin() + static_cast<std::ptrdiff_t>(i), std::move(cell));
    }
    take(word[i]);
  }
}

/// A part of an access within a word that no locked instruction uses.
void RaceTool::access_plain(const ProcessorAccess& a, PhysAddr begin, std::uint32_t size) {
  const std::uint32_t first = begin.offset_in(kWordBytes);
  for_cells(words_[begin.value / kWordBytes], first, first + size, [&](Cell& cell) {
    compare(cell.write, a, true);
    if (a.write) {
      for (const Place& read : cell.reads) compare(read, a, false);
      cell.reads.clear();
      cell.write = place_of(a);
      return;
    }
    const auto own = std::find_if(cell.reads.begin(), cell.reads.end(),
                                  [&](const Place& p) { return p.processor == a.processor; });
    if (own != cell.reads.end()) {
      *own = place_of(a);
    } else {
      cell.reads.push_back(place_of(a));
    }
  });
}

void RaceTool::access(const ProcessorAccess& a) {
  if (a.kind == AccessKind::walk) return;  // no instruction's own
  const auto at = [&](std::uint32_t i) { return a.address.plus32(i); };
  bool locked = false;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    if (!locked_.has(at(i))) continue;
    locked = true;
    acquire(a, at(i));
  }
  found_.clear();
  for (std::uint32_t i = 0; i < a.size;) {
    const std::uint32_t begin = i;
    while (i < a.size && !(locked && locked_.has(at(i))) &&
           (i == begin || at(i).offset_in(kWordBytes) != 0))
      ++i;
    if (i != begin) {
      access_plain(a, at(begin), i - begin);
    } else {
      ++i;
    }
  }
  if (!locked || !a.write) return;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    if (locked_.has(at(i))) leave(a, at(i));
  }
  ++clocks_[a.processor][a.processor];
}

void RaceTool::called(std::uint8_t processor, LinearAddr from) { calls_.called(processor, from); }

void RaceTool::returned(std::uint8_t processor) { calls_.returned(processor); }

void RaceTool::message(const ProcessorMessage& m) {
  Clock& own = clocks_[m.from];
  if (m.to_one) {
    to_one_[m.signal].push_back({m.to, own});
  } else {
    for (std::size_t p = 0; p < processors_; ++p) {
      if (!m.to.test(p)) continue;
      Clock& sent = sent_[{p, m.signal}];
      sent.resize(processors_);
      join(sent, own);
    }
  }
  ++own[m.from];
}

void RaceTool::interrupted(std::uint8_t processor, std::uint16_t signal) {
  Clock& own = clocks_[processor];
  const auto sent = sent_.find({processor, signal});
  if (sent != sent_.end()) {
    join(own, sent->second);
    sent_.erase(sent);
  }
  // Whoever takes it is the only one.
  std::vector<ToOne>& all = to_one_[signal];
  const auto its =
      std::find_if(all.begin(), all.end(), [&](const ToOne& m) { return m.to.test(processor); });
  if (its == all.end()) return;
  join(own, its->sent);
  all.erase(its);
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
