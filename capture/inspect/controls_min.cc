// Minimum mode: Intel 8086 and 8088 data sheets, figure "Bus timing - minimum mode system", tables
// "S4, S3" and "Status bit encoding" (SSO#, DT/R#, IO/M#).

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/inspect/bus_controls.h"
#include "capture/inspect/cycle_rows.h"

namespace citcat {
namespace {

constexpr std::size_t kFewestLatches = 64;
// Strobes go low in T2, or a clock later where samples are taken near the edge.
constexpr std::size_t kStrobeDelay = 2;

/// The low phase of a strobe between one ALE and the next.
struct Strobe {
  std::size_t low = 0;     ///< clocks in which it is low
  std::size_t last = 0;    ///< the last of them
  std::size_t phases = 0;  ///< how often it goes low
};

class ControlsMin {
 public:
  ControlsMin(ChannelActivity& activity, std::size_t clock, bool wide)
      : activity_(activity), clock_(clock), wide_(wide) {}

  std::optional<ControlMatch> run() {
    if (!find_strobes()) return std::nullopt;
    make_cycles();
    CycleRows rows(activity_, match_.cycles, taken());
    if (!find_fetches(rows)) return std::nullopt;
    find_ports(rows);
    find_directions(rows);
    return std::move(match_);
  }

 private:
  /// ALE may end as CLK rises.
  bool latches(std::size_t c, std::size_t clock) const {
    return at_clock(activity_.before(c), clock) || at_clock(activity_.at_begin(c), clock);
  }
  bool is_low(std::size_t c, std::size_t clock) const {
    return !at_clock(activity_.at_end(c), clock);
  }

  /// The clocks of a channel's high phases, if nearly all last for one clock.
  std::vector<std::size_t> latch_clocks(std::size_t c) const {
    std::vector<std::size_t> clocks;
    std::size_t long_ones = 0;
    for (std::size_t clock = 0; clock < activity_.clocks(); ++clock) {
      if (!latches(c, clock)) continue;
      if (!clocks.empty() && clocks.back() + 1 == clock) ++long_ones;
      clocks.push_back(clock);
    }
    if (clocks.size() < kFewestLatches || long_ones * 50 > clocks.size()) return {};
    return clocks;
  }

  /// What a channel does between one latch and the next, as a strobe; empty if it is none: it is
  /// high while an address is latched.
  std::vector<Strobe> strobes_of(std::size_t c, const std::vector<std::size_t>& latches) const {
    std::vector<Strobe> strobes(latches.size());
    std::size_t at_latch = 0;
    for (std::size_t i = 0; i < latches.size(); ++i) {
      const std::size_t end = i + 1 < latches.size() ? latches[i + 1] : activity_.clocks();
      at_latch += is_low(c, latches[i]) ? 1 : 0;
      bool low = false;
      for (std::size_t clock = latches[i] + 1; clock < end; ++clock) {
        const bool now = is_low(c, clock);
        // A halted processor gives the bus away.
        if (strobes[i].phases == 0 && clock > latches[i] + kStrobeDelay) break;
        if (now && !low) ++strobes[i].phases;
        // Later ones are of another master.
        if (now && strobes[i].phases == 1) {
          ++strobes[i].low;
          strobes[i].last = clock;
        }
        low = now;
      }
    }
    if (at_latch * 50 > latches.size()) return {};
    return strobes;
  }

  /// In nearly every cycle, one of two strobes goes low, once.
  bool find_strobes() {
    std::size_t most = 0;
    for (std::size_t ale = 0; ale < activity_.channels(); ++ale) {
      if (ale == clock_ || activity_.changes()[ale] == 0) continue;
      const auto latches = latch_clocks(ale);
      if (latches.empty()) continue;
      std::vector<std::pair<std::size_t, std::vector<Strobe>>> candidates;
      for (std::size_t c = 0; c < activity_.channels(); ++c) {
        if (c == ale || c == clock_ || activity_.changes()[c] == 0) continue;
        auto strobes = strobes_of(c, latches);
        if (!strobes.empty()) candidates.emplace_back(c, std::move(strobes));
      }
      for (const auto& [read, reads] : candidates) {
        for (const auto& [write, writes] : candidates) {
          const auto [one, both, first] = compare(reads, writes);
          if (read == write || one * 10 < latches.size() * 8 || both * 20 > one ||
              first * 2 < one || one <= most)
            continue;
          most = one;
          ale_ = ale;
          read_ = read;
          write_ = write;
        }
      }
    }
    if (most == 0) return false;
    latches_ = latch_clocks(ale_);
    match_.pins = {{"CLK", clock_, "changes all the time, and what others do follows it"},
                   {"ALE", ale_, "high for a clock at the beginning of each cycle"},
                   {"RD", read_, "low once in most cycles, and never with WR#"},
                   {"WR", write_, "low once in most other cycles"}};
    find_acknowledge();
    return true;
  }
  /// In how many cycles one of them goes low, once; both; the first one.
  static std::array<std::size_t, 3> compare(const std::vector<Strobe>& a,
                                            const std::vector<Strobe>& b) {
    std::array<std::size_t, 3> count{};
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool low_a = a[i].low != 0, low_b = b[i].low != 0;
      if (low_a && low_b) ++count[1];
      if (low_a != low_b && a[i].phases + b[i].phases == 1) ++count[0];
      count[2] += low_a && !low_b ? 1 : 0;
    }
    return count;
  }

  /// INTA# goes low in two cycles after each other, in which RD# and WR# do not.
  void find_acknowledge() {
    const auto reads = strobes_of(read_, latches_), writes = strobes_of(write_, latches_);
    std::size_t most = 1;
    std::optional<std::size_t> steady;
    for (std::size_t c = 0; c < activity_.channels(); ++c) {
      if (c == ale_ || c == read_ || c == write_ || c == clock_) continue;
      if (activity_.changes()[c] == 0) {
        if (!is_low(c, 0)) steady = c;
        continue;
      }
      const auto strobes = strobes_of(c, latches_);
      std::size_t alone = 0, others = 0, pairs = 0;
      bool before = false;
      for (std::size_t i = 0; i < strobes.size(); ++i) {
        const bool low = strobes[i].low != 0, other = reads[i].low != 0 || writes[i].low != 0;
        alone += low && !other ? 1 : 0;
        others += low && other ? 1 : 0;
        pairs += low && before ? 1 : 0;
        before = low;
      }
      if (others != 0 || alone != 2 * pairs || alone <= most) continue;
      most = alone;
      acknowledge_ = c;
    }
    if (acknowledge_) {
      match_.pins.push_back({"INTA", *acknowledge_, "low in pairs of cycles without RD# and WR#"});
    } else if (steady) {
      match_.pins.push_back({"INTA", *steady, "never low"});
      match_.doubts.push_back(
          "INTA#: no interrupt is acknowledged; any channel that is always high "
          "stands for it");
    }
  }

  std::vector<std::size_t> taken() const {
    std::vector<std::size_t> channels;
    for (const ControlMatch::Pin& pin : match_.pins) channels.push_back(pin.channel);
    return channels;
  }

  void make_cycles() {
    const auto reads = strobes_of(read_, latches_), writes = strobes_of(write_, latches_);
    const auto acknowledges =
        acknowledge_ ? strobes_of(*acknowledge_, latches_) : std::vector<Strobe>(reads.size());
    for (std::size_t i = 0; i < latches_.size(); ++i) {
      UnnamedCycle cycle{latches_[i], latches_[i], kHalt};
      if (reads[i].low != 0) cycle = {latches_[i], reads[i].last, kRead};
      if (writes[i].low != 0) cycle = {latches_[i], writes[i].last, kWrite};
      if (acknowledges[i].low != 0) cycle = {latches_[i], acknowledges[i].last, kAcknowledge};
      match_.cycles.push_back(cycle);
    }
  }

  std::vector<std::size_t> cycles_of(unsigned status) const {
    std::vector<std::size_t> numbers;
    for (std::size_t n = 0; n < match_.cycles.size(); ++n)
      if (match_.cycles[n].status == status) numbers.push_back(n);
    return numbers;
  }

  /// S4 and S3 are 1 0 in code fetches; on an 8088, SSO# is low there and high in other reads.
  bool find_fetches(const CycleRows& rows) {
    const std::vector<std::size_t> reads = cycles_of(kRead);
    std::vector<std::size_t> best;
    long most = 0;
    const auto consider = [&](auto is_fetch, auto keep) {
      std::vector<std::size_t> chosen;
      for (const std::size_t n : reads)
        if (is_fetch(n)) chosen.push_back(n);
      if (chosen.size() < kFewestLatches) return;
      const long score = rows.looks_fetched(chosen);
      if (score <= most) return;
      most = score;
      best = std::move(chosen);
      keep();
    };
    const std::size_t channels = rows.channels().size();
    for (std::size_t i = 0; i < channels; ++i) {
      for (std::size_t k = 0; k < channels; ++k) {
        if (i == k) continue;
        consider([&](std::size_t n) { return rows.in_middle(n, i) && !rows.in_middle(n, k); },
                 [] {});
      }
    }
    if (!wide_) {
      const long with_segment = most;
      most = 0;
      const auto by_segment = best;
      for (std::size_t i = 0; i < channels; ++i)
        consider([&](std::size_t n) { return !rows.at_begin(n, i) && !rows.in_middle(n, i); },
                 [&] { status_ = i; });
      if (most * 20 < with_segment * 19) {
        status_.reset();
        best = by_segment;
      }
    }
    if (best.empty()) return false;
    for (const std::size_t n : best) match_.cycles[n].status = kFetch;
    if (status_)
      match_.pins.push_back(
          {"SSO", rows.channels()[*status_], "low in the reads whose addresses count"});
    return true;
  }

  /// IO/M# of an 8088 is high for ports and acknowledges, M/IO# of an 8086 low. Neither is so in
  /// fetches.
  void find_ports(const CycleRows& rows) {
    std::optional<std::size_t> best;
    std::size_t fewest = rows.size(), acknowledges = 0;
    for (std::size_t i = 0; i < rows.channels().size(); ++i) {
      std::size_t ports = 0, fetches = 0, of_acknowledges = 0, all_fetches = 0, changes = 0;
      acknowledges = 0;
      for (std::size_t n = 0; n < rows.size(); ++n) {
        const UnnamedCycle& cycle = match_.cycles[n];
        const bool port = rows.at_begin(n, i) != wide_;
        // Another master may have the bus after a halt.
        if (cycle.status != kHalt) changes += rows.at_begin(n, i) != rows.in_middle(n, i) ? 1 : 0;
        ports += port ? 1 : 0;
        all_fetches += cycle.is_fetch() ? 1 : 0;
        fetches += port && cycle.is_fetch() ? 1 : 0;
        acknowledges += cycle.is_acknowledge() ? 1 : 0;
        of_acknowledges += port && cycle.is_acknowledge() ? 1 : 0;
      }
      if (ports == 0 || fetches * 50 > all_fetches || changes * 50 > rows.size() ||
          of_acknowledges * 50 < acknowledges * 49 || ports >= fewest)
        continue;
      fewest = ports;
      best = i;
    }
    if (!best) {
      match_.doubts.push_back(std::string("no port and no interrupt shows which channel is ") +
                              (wide_ ? "M/IO#" : "IO/M#"));
      return;
    }
    match_.pins.push_back({wide_ ? "MIO" : "IOM", rows.channels()[*best],
                           wide_ ? "high in fetches, low in acknowledges and seldom otherwise"
                                 : "low in fetches, high in acknowledges and seldom otherwise"});
    if (acknowledges == 0)
      match_.doubts.push_back(match_.pins.back().pin +
                              ": no interrupt tells it from an address line");
    for (std::size_t n = 0; n < rows.size(); ++n) {
      unsigned& status = match_.cycles[n].status;
      if (rows.at_begin(n, *best) == wide_) continue;
      if (status == kRead || status == kFetch) status = kPortRead;
      if (status == kWrite) status = kPortWrite;
    }
  }

  /// DT/R# is high in writes, low in reads.
  void find_directions(const CycleRows& rows) {
    for (std::size_t i = 0; i < rows.channels().size(); ++i) {
      std::size_t wrong = 0, all = 0;
      for (std::size_t n = 0; n < rows.size(); ++n) {
        const unsigned status = match_.cycles[n].status;
        if (status == kHalt || status == kAcknowledge) continue;
        const bool write = status == kWrite || status == kPortWrite;
        ++all;
        wrong += rows.at_begin(n, i) != write || rows.in_middle(n, i) != write ? 1 : 0;
      }
      if (wrong * 100 > all) continue;
      match_.pins.push_back({"DTR", rows.channels()[i], "high in writes, low in reads"});
      return;
    }
  }

  ChannelActivity& activity_;
  std::size_t clock_;
  bool wide_;
  ControlMatch match_;
  std::size_t ale_ = 0, read_ = 0, write_ = 0;
  std::vector<std::size_t> latches_;
  std::optional<std::size_t> acknowledge_, status_;
};

std::optional<ControlMatch> find_controls_min(ChannelActivity& activity, bool wide) {
  for (const std::size_t clock : likely_clocks(activity)) {
    activity.set_clock(clock);
    if (auto match = ControlsMin(activity, clock, wide).run()) return match;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ControlMatch> find_controls_8088_min(ChannelActivity& activity) {
  return find_controls_min(activity, false);
}
std::optional<ControlMatch> find_controls_8086_min(ChannelActivity& activity) {
  return find_controls_min(activity, true);
}

}  // namespace citcat
