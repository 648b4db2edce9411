#include "tools/processors/sharing_tool.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "tools/processors/code_name.h"

namespace citcat::tools {
namespace {

std::string route(std::size_t from, std::size_t to) {
  return std::to_string(from) + "->" + std::to_string(to);
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace

SharingTool::SharingTool(std::size_t processors, std::uint32_t line_bytes,
                         std::function<std::uint64_t()> clock, std::size_t top,
                         const Symbols& symbols)
    : processors_(processors),
      line_bytes_(std::min(line_bytes, kMostLineBytes)),
      clock_(std::move(clock)),
      top_(top),
      symbols_(symbols),
      bytes_(processors * processors) {}

/// Bytes that others wrote and this processor has not read since, in `size` bytes from `at` on.
void SharingTool::read(Line& line, const ProcessorAccess& a, PhysAddr at, std::uint32_t size) {
  const std::uint32_t first = at.offset_in(line_bytes_);
  const auto self = static_cast<std::uint16_t>(1U << a.processor);
  std::map<Pair, Communication> told;
  for (std::uint32_t i = first; i < first + size; ++i) {
    const bool news =
        line.writer[i] != kNobody && line.writer[i] != a.processor && (line.seen[i] & self) == 0;
    line.seen[i] |= self;
    if (!news) continue;
    ++line.bytes;
    ++bytes_[line.writer[i] * processors_ + a.processor];
    Communication& all = told[{line.writer[i], a.processor, line.written[i], a.instruction.value}];
    if (all.bytes++ == 0) all.first = at.plus32(i - first);
    all.written_at = std::max(all.written_at, line.at[i]);
  }
  for (auto& [pair, communication] : told) {
    auto& [times, bytes] = pairs_[pair];
    ++times;
    bytes += communication.bytes;
    if (!report_each_) continue;
    communication.read = a;
    communication.writer = pair.from;
    communication.written_by = LinearAddr{pair.writer};
    report_each_(communication);
  }
}

void SharingTool::follow_lock(const ProcessorAccess& a) {
  const std::uint64_t dword = a.address.value / 4;
  const auto known = locks_.find(dword);
  if (!a.locked && known == locks_.end()) return;
  Lock& lock = known != locks_.end() ? known->second : locks_[dword];
  if (lock.locked.empty()) {
    for (auto* const each : {&lock.locked, &lock.handed, &lock.waited, &lock.waits, &lock.since})
      each->resize(processors_);
  }
  const std::uint8_t p = a.processor;
  const bool of_another = lock.holder != kNobody && lock.holder != p;
  if (!a.write) {
    // It reads what another one left there: it begins to wait, or waits on.
    if (of_another && lock.since[p] == 0) lock.since[p] = clock_() + 1;
    return;
  }
  if (a.locked) ++lock.locked[p];
  if (of_another) {
    ++lock.handed[p];
    if (lock.since[p] != 0) {
      ++lock.waits[p];
      lock.waited[p] += clock_() + 1 - lock.since[p];
    }
  }
  lock.since[p] = 0;
  lock.holder = p;
}

void SharingTool::access(const ProcessorAccess& a) {
  follow_lock(a);
  const auto self = static_cast<std::uint16_t>(1U << a.processor);
  for (std::uint32_t done = 0; done < a.size;) {
    const PhysAddr at = a.address.plus32(done);
    const std::uint32_t first = at.offset_in(line_bytes_);
    const std::uint32_t size = std::min<std::uint32_t>(a.size - done, line_bytes_ - first);
    Line& line = lines_[at.value / line_bytes_];
    line.touched |= self;
    if (a.locked && a.write) ++line.locked;
    if (a.write) {
      line.wrote |= self;
      if (line.last != a.processor && line.last != kNobody) ++line.moves;
      line.last = a.processor;
      for (std::uint32_t i = first; i < first + size; ++i) {
        line.writer[i] = a.processor;
        line.seen[i] = self;
        line.written[i] = a.instruction.value;
        line.at[i] = a.position.instruction;
      }
    } else {
      if (line.last != a.processor && line.last != kNobody) {
        ++line.moves;
        line.last = kNobody;  // both have it now
      }
      read(line, a, at, size);
    }
    done += size;
  }
}

void SharingTool::report_lines(Report& out) const {
  std::vector<std::pair<std::uint64_t, const Line*>> shared;
  std::uint64_t lines = 0, without = 0, moves = 0;
  for (const auto& [number, line] : lines_) {
    if (std::popcount(line.touched) < 2 || line.wrote == 0 || line.moves == 0) continue;
    ++lines;
    moves += line.moves;
    if (line.bytes == 0) ++without;
    shared.emplace_back(number, &line);
  }
  out.value("lines", "lines that went between processors", lines);
  out.value("moves", "times that one went", moves);
  out.value("false_lines", "lines in which nobody read a byte that another processor wrote",
            without);
  std::sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) {
    return std::pair(b.second->moves, a.first) < std::pair(a.second->moves, b.first);
  });
  Table& table = out.table("shared_lines", "lines",
                           {{"line", "line", ""},
                            {"moves", "moves", ""},
                            {"bytes", "bytes", ""},
                            {"sharing", "sharing", ""},
                            {"writers", "writers", ""},
                            {"locked", "locked", ""}});
  for (std::size_t i = 0; i < std::min(top_, shared.size()); ++i) {
    const auto& [number, line] = shared[i];
    table.row({hexadecimal(number * line_bytes_), line->moves, line->bytes,
               std::string(line->bytes == 0 ? "false" : "true"),
               static_cast<std::uint64_t>(std::popcount(line->wrote)), line->locked});
  }
}

void SharingTool::report_pairs(Report& out) const {
  std::vector<std::pair<Pair, std::pair<std::uint64_t, std::uint64_t>>> pairs(pairs_.begin(),
                                                                              pairs_.end());
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  Table& table = out.table("pairs", "from instruction to instruction",
                           {{"route", "route", ""},
                            {"writer", "writer", ""},
                            {"reader", "reader", ""},
                            {"times", "times", ""},
                            {"bytes", "bytes", ""}});
  for (std::size_t i = 0; i < std::min(top_, pairs.size()); ++i) {
    const Pair& pair = pairs[i].first;
    table.row({route(pair.from, pair.to), code_place(symbols_, LinearAddr{pair.writer}),
               code_place(symbols_, LinearAddr{pair.reader}), pairs[i].second.first,
               pairs[i].second.second});
  }
}

void SharingTool::report_locks(Report& out) const {
  std::vector<std::pair<std::uint64_t, const Lock*>> used;
  for (const auto& [dword, lock] : locks_) {
    if (sum(lock.handed) != 0) used.emplace_back(dword, &lock);
  }
  std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
    return std::pair(sum(b.second->handed), a.first) < std::pair(sum(a.second->handed), b.first);
  });
  Table& table = out.table("locks", "places of locked instructions",
                           {{"address", "address", ""},
                            {"processor", "processor", ""},
                            {"locked", "locked", ""},
                            {"taken_over", "taken over", ""},
                            {"waits", "waits", ""},
                            {"waited", "waited", "clocks"}});
  for (std::size_t i = 0; i < std::min(top_, used.size()); ++i) {
    const Lock& lock = *used[i].second;
    for (std::size_t p = 0; p < processors_; ++p) {
      table.row({hexadecimal(used[i].first * 4), std::uint64_t{p}, lock.locked[p], lock.handed[p],
                 lock.waits[p], lock.waited[p]});
    }
  }
}

void SharingTool::report(Report& out) const {
  Table& routes = out.table("routes", "bytes that were read and another processor wrote",
                            {{"route", "route", ""}, {"bytes", "bytes", ""}});
  for (std::size_t from = 0; from < processors_; ++from) {
    for (std::size_t to = 0; to < processors_; ++to) {
      if (from != to) routes.row({route(from, to), bytes_[from * processors_ + to]});
    }
  }
  report_lines(out);
  report_pairs(out);
  report_locks(out);
}

}  // namespace citcat::tools
