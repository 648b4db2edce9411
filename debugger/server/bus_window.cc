#include "debugger/server/bus_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "debugger/server/run_events.h"
#include "events/position_text.h"
#include "formats/io/error.h"

namespace citcat {

namespace {

/// Instructions on either side whose accesses are looked at.
constexpr std::uint64_t kReach = 2000;

/// The captured transactions around a place.
struct Captured {
  std::deque<BusTransaction> before;
  std::vector<BusTransaction> after;
  bool counted = false;  ///< they have positions
};

/// In a capture without counts: the first transaction that the replay has not reached, by the
/// schedule.
std::uint64_t next_transaction(const Recording& recording, Position here) {
  std::uint64_t next = 0;
  const auto passed = [&](bool known, Position at, std::uint64_t transaction) {
    if (known && at < here) next = std::max(next, transaction + 1);
  };
  for (const Interrupt& i : recording.interrupts)
    passed(i.position_known, i.position, i.transaction);
  for (const IoRead& r : recording.io_reads) passed(r.position_known, r.position, r.transaction);
  for (const ExternalWrite& w : recording.external_writes) {
    passed(w.position_known, w.position, w.transaction);
  }
  return next;
}

Captured captured_around(const RecordingFile& file, Position here, std::size_t count) {
  Captured captured;
  const std::uint64_t next = next_transaction(file.recording(), here);
  const auto reader = file.evidence();
  for (BusTransaction t; captured.after.size() < count && reader->next(t);) {
    captured.counted |= t.has(kPositionKnown);
    const bool passed = t.has(kPositionKnown) ? t.position < here : t.index < next;
    // What has no position among those that have stays where it is.
    if (passed || (captured.after.empty() && captured.counted && !t.has(kPositionKnown))) {
      captured.before.push_back(t);
      if (captured.before.size() > count) captured.before.pop_front();
    } else {
      captured.after.push_back(t);
    }
  }
  return captured;
}

/// "bus" lines and "replay" lines; `here` among them.
std::string merged(const std::vector<std::pair<Position, std::string>>& bus,
                   const std::vector<std::pair<Position, std::string>>& replay, Position here) {
  std::vector<std::pair<Position, std::string>> lines;
  for (const auto& [at, line] : bus) lines.push_back({at, "bus     " + line});
  for (const auto& [at, line] : replay) lines.push_back({at, "replay  " + line});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  bool shown = false;
  for (const auto& [at, line] : lines) {
    if (!std::exchange(shown, shown || at >= here) && at >= here) {
      text += fmt::format("{:>14}  <- here\n", position_text(here));
    }
    text += fmt::format("{:>14}  {}\n", position_text(at), line);
  }
  if (!shown) text += fmt::format("{:>14}  <- here\n", position_text(here));
  return text;
}

}  // namespace

std::string bus_window(DebugTarget& target, std::size_t count,
                       const std::function<std::string(const BusTransaction&)>& text,
                       const DebugTarget::Interrupt& interrupt) {
  ReplayTimeline& timeline = target.timeline();
  const Position here = timeline.position();
  const Captured captured = captured_around(target.file(), here, count);
  std::vector<std::pair<Position, std::string>> bus;
  Position last;
  const auto add = [&](const BusTransaction& t) {
    if (t.has(kPositionKnown)) last = t.position;
    bus.push_back({captured.counted ? last : here, text(t)});
  };
  for (const BusTransaction& t : captured.before) add(t);
  const std::size_t before = bus.size();
  for (const BusTransaction& t : captured.after) add(t);
  AccessLog log;
  const Position from{here.instruction - std::min(here.instruction, kReach), 0};
  const Moment to{timeline.moment().deliveries, {here.instruction + kReach, 0}};
  if (!timeline.tell(from, to, log, true, interrupt)) return "interrupted\n";
  const auto middle = std::partition_point(log.lines().begin(), log.lines().end(),
                                           [&](const auto& line) { return line.first < here; });
  const auto first = middle - std::min<std::ptrdiff_t>(middle - log.lines().begin(),
                                                       static_cast<std::ptrdiff_t>(count));
  const auto end = middle + std::min<std::ptrdiff_t>(log.lines().end() - middle,
                                                     static_cast<std::ptrdiff_t>(count));
  const std::vector<std::pair<Position, std::string>> replay(first, end);
  if (captured.counted) return merged(bus, replay, here);
  std::string lines =
      "the capture does not count instructions: this list comes from the schedule\n";
  for (std::size_t i = 0; i < bus.size(); ++i) {
    if (i == before) lines += "                <- about here\n";
    lines += "bus     " + bus[i].second + "\n";
  }
  return lines + merged({}, replay, here);
}

}  // namespace citcat
