// The buses of the 80286 and the 386SX: an address phase, and a data phase that READY# ends (Intel
// 80286 data sheet, "Bus states" and table "Bus cycle status definition"; 386SX data sheet, table
// "Bus cycle definitions" and "Bus states").

#include <algorithm>
#include <deque>
#include <map>

#include "capture/inspect/bus_controls.h"
#include "capture/inspect/cycle_rows.h"
#include "capture/inspect/definition_lines.h"

namespace citcat {
namespace {

// CLK and CLK2 have two periods in a bus state.
constexpr std::size_t kStateClocks = 2;
constexpr std::size_t kFewestPhases = 64;

/// A low phase of a line, in clocks.
struct Pulse {
  std::size_t begin = 0, end = 0;
  std::size_t length() const { return end - begin; }
};

std::vector<Pulse> low_pulses(const ClockBits& bits, std::size_t clocks) {
  std::vector<Pulse> pulses;
  bool low = false;
  for (std::size_t clock = 0; clock < clocks; ++clock) {
    const bool now_low = !at_clock(bits, clock);
    if (now_low && !low) pulses.push_back({clock, clocks});
    if (!now_low && low) pulses.back().end = clock;
    low = now_low;
  }
  return pulses;
}

/// The address and the data phase of a cycle.
struct Phases {
  std::size_t address = 0, ready = 0;
};

class ReadyBus {
 public:
  ReadyBus(ChannelActivity& activity, std::size_t clock) : activity_(activity), clock_(clock) {
    for (std::size_t c = 0; c < activity.channels(); ++c) {
      if (c == clock || activity.changes()[c] == 0) continue;
      pulses_[c] = low_pulses(activity.at_end(c), activity.clocks());
    }
  }

  const std::map<std::size_t, std::vector<Pulse>>& pulses() const { return pulses_; }

  /// Whether nearly all phases of a line last for a bus state.
  bool lasts_a_state(std::size_t channel) const {
    const auto& pulses = pulses_.at(channel);
    const auto right = std::count_if(pulses.begin(), pulses.end(), [](const Pulse& pulse) {
      return pulse.length() == kStateClocks;
    });
    return pulses.size() >= kFewestPhases &&
           static_cast<std::size_t>(right) * 50 >= pulses.size() * 49;
  }

  /// Whether most of a line's phases are a bus state long, or shorter.
  bool lasts_briefly(std::size_t channel) const {
    const auto& pulses = pulses_.at(channel);
    const auto wrong = std::count_if(pulses.begin(), pulses.end(), [](const Pulse& pulse) {
      return pulse.length() > kStateClocks;
    });
    return pulses.size() >= kFewestPhases && static_cast<std::size_t>(wrong) * 5 <= pulses.size();
  }
  /// Whether nearly none of a line's phases is shorter than a bus state.
  bool lasts_long(std::size_t channel) const {
    const auto& pulses = pulses_.at(channel);
    const auto wrong = std::count_if(pulses.begin(), pulses.end(), [](const Pulse& pulse) {
      return pulse.length() < kStateClocks;
    });
    return pulses.size() >= kFewestPhases && static_cast<std::size_t>(wrong) * 50 <= pulses.size();
  }

  /// The cycles whose addresses begin with `starts`, if `ready` ends each of them: at the end of a
  /// bus state, `most` of them at a time. Empty if it does not.
  std::vector<Phases> cycles(const std::vector<std::size_t>& starts, std::size_t ready,
                             std::size_t most) const {
    const ClockBits& level = activity_.at_end(ready);
    std::vector<Phases> found;
    std::deque<std::size_t> open;
    std::size_t next = 0, oddities = 0;
    std::size_t began = 0;  // the state from which READY# counts for the cycle in front
    for (std::size_t clock = 0; clock < activity_.clocks(); ++clock) {
      if (next < starts.size() && starts[next] == clock) {
        if (open.size() == most) {
          if (++oddities > 8 + next / 50) return {};
          open.pop_front();
        }
        if (open.empty()) began = clock + kStateClocks;
        open.push_back(clock);
        ++next;
      }
      if (open.empty() || clock < began || (clock - open.front()) % kStateClocks == 0) continue;
      if (at_clock(level, clock)) continue;
      found.push_back({open.front(), clock});
      open.pop_front();
      // One that was announced meanwhile has its first state now.
      began = clock + 1 + kStateClocks;
    }
    const std::size_t lows = pulses_.at(ready).size();
    const bool ends_each = found.size() * 50 >= starts.size() * 49 && oddities * 50 <= found.size();
    // It does nothing else.
    const bool alone = lows <= starts.size() + starts.size() / 20 + 2;
    return ends_each && alone ? found : std::vector<Phases>();
  }

  bool at(std::size_t channel, std::size_t clock) const {
    return at_clock(activity_.at_end(channel), clock);
  }
  ChannelActivity& activity() const { return activity_; }
  std::size_t clock() const { return clock_; }

 private:
  ChannelActivity& activity_;
  std::size_t clock_;
  std::map<std::size_t, std::vector<Pulse>> pulses_;
};

std::vector<UnnamedCycle> unnamed(const std::vector<Phases>& phases) {
  std::vector<UnnamedCycle> cycles;
  for (const Phases& p : phases) cycles.push_back({p.address, p.ready, kRead});
  return cycles;
}

/// How often each of a row's channels is what `wanted` says, of the cycles where it says something.
template <typename Wanted>
std::vector<std::size_t> misses(const CycleRows& rows, Wanted wanted) {
  std::vector<std::size_t> wrong(rows.channels().size());
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::optional<bool> level = wanted(n);
    if (!level) continue;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      wrong[i] += rows.at_begin(n, i) != *level ? 1 : 0;
  }
  return wrong;
}

void add_clock(ControlMatch& match, const char* pin, std::size_t clock, std::size_t ready) {
  match.pins.push_back({pin, clock, "changes all the time, and what others do follows it"});
  match.pins.push_back({"READY", ready, "goes low at the end of each bus cycle, and only there"});
}

// ---- 80286

class Controls286 {
 public:
  explicit Controls286(const ReadyBus& bus) : bus_(bus) {}

  std::optional<ControlMatch> run() {
    if (!find_status()) return std::nullopt;
    CycleRows rows(bus_.activity(), match_.cycles, {bus_.clock(), s0_, s1_, ready_});
    if (!find_code(rows)) return std::nullopt;
    find_memory(rows);
    return std::move(match_);
  }

 private:
  /// S1# and S0# go low for one state at the beginning of each cycle: S1# for reads, which are
  /// more.
  bool find_status() {
    std::vector<std::size_t> candidates;
    for (const auto& [channel, pulses] : bus_.pulses())
      if (bus_.lasts_a_state(channel)) candidates.push_back(channel);
    std::size_t most = 0;
    for (const std::size_t a : candidates) {
      for (const std::size_t b : candidates) {
        if (bus_.pulses().at(a).size() < bus_.pulses().at(b).size() || a == b) continue;
        const auto starts = starts_of(a, b);
        if (starts.size() <= most) continue;
        for (const auto& [ready, pulses] : bus_.pulses()) {
          if (ready == a || ready == b || !bus_.lasts_briefly(ready)) continue;
          const auto phases = bus_.cycles(starts, ready, 1);
          if (phases.size() <= most) continue;
          most = phases.size();
          s1_ = a;
          s0_ = b;
          ready_ = ready;
          match_.cycles = unnamed(phases);
        }
      }
    }
    if (most == 0) return false;
    add_clock(match_, "CLK", bus_.clock(), ready_);
    match_.pins.push_back({"S1", s1_, "low for a state at the beginning of reads, which are more"});
    match_.pins.push_back({"S0", s0_, "low for a state at the beginning of writes"});
    return true;
  }

  std::vector<std::size_t> starts_of(std::size_t a, std::size_t b) const {
    std::vector<std::size_t> starts;
    for (const std::size_t channel : {a, b})
      for (const Pulse& pulse : bus_.pulses().at(channel)) starts.push_back(pulse.begin);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    return starts;
  }

  bool reads(std::size_t n) const { return !bus_.at(s1_, match_.cycles[n].begin); }
  bool writes(std::size_t n) const { return !bus_.at(s0_, match_.cycles[n].begin); }

  /// COD/INTA# is high in code fetches and low where memory is written.
  bool find_code(const CycleRows& rows) {
    long most = 0;
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < rows.channels().size(); ++i) {
      std::vector<std::size_t> chosen;
      std::size_t high_writes = 0, all_writes = 0;
      for (std::size_t n = 0; n < rows.size(); ++n) {
        if (reads(n) && !writes(n) && rows.at_begin(n, i)) chosen.push_back(n);
        if (!writes(n) || reads(n)) continue;
        ++all_writes;
        high_writes += rows.at_begin(n, i) ? 1 : 0;
      }
      const long score = rows.looks_fetched(chosen);
      if (chosen.size() < kFewestPhases || score <= most || high_writes * 2 > all_writes) continue;
      most = score;
      best = i;
    }
    if (!best) return false;
    code_ = *best;
    match_.pins.push_back({"CODINTA", rows.channels()[code_],
                           "high in the reads whose addresses count, low in most writes"});
    return true;
  }

  /// M/IO# is low for ports and acknowledges: in writes, it is the opposite of COD/INTA#.
  void find_memory(const CycleRows& rows) {
    const auto wanted = [&](std::size_t n) -> std::optional<bool> {
      const bool code = rows.at_begin(n, code_);
      if (writes(n) && !reads(n)) return !code;
      if (reads(n) && !writes(n) && !code) return true;
      return std::nullopt;
    };
    const auto wrong = misses(rows, wanted);
    std::optional<std::size_t> best;
    std::size_t most_low = 0, fewest = rows.size() / 100;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      std::size_t low = 0, high_in_code = 0, code = 0;
      for (std::size_t n = 0; n < rows.size(); ++n) {
        low += rows.at_begin(n, i) ? 0 : 1;
        if (!reads(n) || writes(n) || !rows.at_begin(n, code_)) continue;
        ++code;
        high_in_code += rows.at_begin(n, i) ? 1 : 0;
      }
      if (i == code_ || low == 0 || high_in_code * 2 < code || wrong[i] > fewest) continue;
      if (best && wrong[i] == fewest && low <= most_low) continue;
      best = i;
      fewest = wrong[i];
      most_low = low;
    }
    if (best) {
      match_.pins.push_back({"MIO", rows.channels()[*best],
                             "low where ports are written, high in other writes and in fetches"});
    } else {
      match_.doubts.push_back("no port and no interrupt shows which channel is M/IO#");
    }
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const bool code = rows.at_begin(n, code_), memory = !best || rows.at_begin(n, *best);
      unsigned& status = match_.cycles[n].status;
      if (reads(n) && writes(n)) {
        status = memory ? kHalt : kAcknowledge;
      } else if (reads(n)) {
        status = !memory ? kPortRead : code ? kFetch : kRead;
      } else {
        status = memory ? kWrite : kPortWrite;
      }
    }
  }

  const ReadyBus& bus_;
  ControlMatch match_;
  std::size_t s0_ = 0, s1_ = 0, ready_ = 0, code_ = 0;
};

// ---- 386SX

class Controls386 {
 public:
  explicit Controls386(const ReadyBus& bus) : bus_(bus) {}

  std::optional<ControlMatch> run() {
    long most = 0;
    std::optional<ControlMatch> best;
    for (const auto& [ads, pulses] : bus_.pulses()) {
      if (!bus_.lasts_long(ads)) continue;
      std::vector<std::size_t> starts;
      for (const Pulse& pulse : pulses) starts.push_back(pulse.begin);
      for (const auto& [ready, others] : bus_.pulses()) {
        if (ready == ads || !bus_.lasts_briefly(ready) || others.size() * 10 > starts.size() * 12 ||
            starts.size() * 10 > others.size() * 12)
          continue;
        const auto phases = bus_.cycles(starts, ready, 2);
        if (phases.empty()) continue;
        match_ = {};
        match_.cycles = unnamed(phases);
        add_clock(match_, "CLK2", bus_.clock(), ready);
        match_.pins.push_back({"ADS", ads, "goes low as each bus cycle begins"});
        CycleRows rows(bus_.activity(), match_.cycles, {bus_.clock(), ads, ready});
        const long score = find_code(rows);
        if (score <= most) continue;
        most = score;
        find_write_and_memory(rows);
        best = match_;
      }
    }
    return best;
  }

 private:
  /// D/C# is low in code fetches.
  long find_code(const CycleRows& rows) {
    long most = 0;
    for (std::size_t i = 0; i < rows.channels().size(); ++i) {
      std::vector<std::size_t> chosen;
      for (std::size_t n = 0; n < rows.size(); ++n)
        if (!rows.at_begin(n, i)) chosen.push_back(n);
      const long score = rows.looks_fetched(chosen);
      if (chosen.size() < kFewestPhases || chosen.size() == rows.size() || score <= most) continue;
      most = score;
      code_ = i;
    }
    if (most > 0)
      match_.pins.push_back(
          {"DC", rows.channels()[code_], "low in the cycles whose addresses count"});
    return most;
  }

  void find_write_and_memory(const CycleRows& rows) {
    for (std::size_t n = 0; n < rows.size(); ++n)
      if (!rows.at_begin(n, code_)) match_.cycles[n].status = kFetch;
    DefinitionLines::find_acknowledges(bus_.activity(), match_.cycles, rows.channels());
    const DefinitionLines lines(bus_.activity(), match_.cycles, rows.channels());
    const auto write = lines.write();
    const auto memory = lines.memory();
    if (write) {
      match_.pins.push_back({"WR", *write, "high where what memory holds changes, low in fetches"});
    } else {
      match_.doubts.push_back("no value in memory that changes shows which channel is W/R#");
    }
    if (memory) {
      match_.pins.push_back(
          {"MIO", *memory, "high in fetches, low where the address lines above A15 are"});
      if (!lines.is_told_by_acknowledges())
        match_.doubts.push_back("M/IO#: no interrupt tells it from an address line");
    } else {
      match_.doubts.push_back("no port and no interrupt shows which channel is M/IO#");
    }
    for (UnnamedCycle& cycle : match_.cycles) {
      const bool writes = write && bus_.at(*write, cycle.begin);
      const bool ports = memory && !bus_.at(*memory, cycle.begin);
      if (cycle.is_acknowledge()) continue;
      if (cycle.is_fetch()) {
        cycle.status = writes ? kHalt : kFetch;
      } else {
        cycle.status = ports ? (writes ? kPortWrite : kPortRead) : (writes ? kWrite : kRead);
      }
    }
  }

  const ReadyBus& bus_;
  ControlMatch match_;
  std::size_t code_ = 0;
};

/// With READY# found, by a clock of these phases.
template <typename Controls>
std::optional<ControlMatch> find_with_ready(ChannelActivity& activity, bool low_phases) {
  for (const std::size_t clock : likely_clocks(activity)) {
    activity.set_clock(clock, low_phases);
    const ReadyBus bus(activity, clock);
    if (auto match = Controls(bus).run()) return match;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ControlMatch> find_controls_286(ChannelActivity& activity) {
  return find_with_ready<Controls286>(activity, false);
}
std::optional<ControlMatch> find_controls_386sx(ChannelActivity& activity) {
  return find_with_ready<Controls386>(activity, true);
}

}  // namespace citcat
