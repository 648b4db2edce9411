#include "capture/inspect/bus_cycles_8088.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace citcat {
namespace {

// A few samples taken on an edge do not make a line another one; each cycle of a wrong choice does.
constexpr std::uint64_t kCyclesPerOddity = 1000;
constexpr std::uint64_t kFewestCycles = 64;
// All threes of them are tried.
constexpr std::size_t kMostCandidates = 96;

/// Bits of the clock before, word by word.
class Delayed {
 public:
  explicit Delayed(const ClockBits& bits) : bits_(bits) {}
  std::uint64_t operator[](std::size_t word) const {
    return bits_[word] << 1 | (word == 0 ? bits_[0] & 1 : bits_[word - 1] >> 63);
  }

 private:
  const ClockBits& bits_;
};

std::uint64_t falls(const ClockBits& bits) {
  const Delayed before(bits);
  std::uint64_t count = 0;
  for (std::size_t w = 0; w < bits.size(); ++w)
    count += static_cast<std::uint64_t>(std::popcount(before[w] & ~bits[w]));
  return count;
}

/// Whether three lines move as a status does: together, and with no change before all are high.
bool is_status(const ClockBits& a, const ClockBits& b, const ClockBits& c) {
  const Delayed old_a(a), old_b(b), old_c(c);
  std::uint64_t cycles = 0, oddities = 0;
  for (std::size_t w = 0; w < a.size(); ++w) {
    const std::uint64_t passive = a[w] & b[w] & c[w];
    const std::uint64_t was_passive = old_a[w] & old_b[w] & old_c[w];
    const std::uint64_t changed = (a[w] ^ old_a[w]) | (b[w] ^ old_b[w]) | (c[w] ^ old_c[w]);
    cycles += static_cast<std::uint64_t>(std::popcount(was_passive & ~passive));
    oddities += static_cast<std::uint64_t>(std::popcount(changed & ~passive & ~was_passive));
  }
  return cycles >= kFewestCycles && oddities <= cycles / kCyclesPerOddity;
}

/// After the two cycles of an interrupt acknowledge the vector is read, as four bytes or two words.
/// How many cycles of status `candidate` follow like this, less those of status `other`.
long reads_after_acknowledges(const std::vector<UnnamedCycle>& cycles, unsigned candidate,
                              unsigned other) {
  constexpr int kVectorCycles = 2;
  long balance = 0;
  for (std::size_t i = 1; i < cycles.size(); ++i) {
    if (!cycles[i - 1].is_acknowledge() || !cycles[i].is_acknowledge()) continue;
    int seen = 0;
    for (std::size_t k = i + 1; k < cycles.size() && seen < kVectorCycles; ++k) {
      if (cycles[k].status != candidate && cycles[k].status != other) continue;
      balance += cycles[k].status == candidate ? 1 : -1;
      ++seen;
    }
  }
  return balance;
}

/// Puts the three lines in order.
StatusMatch ordered(const ChannelActivity& activity, StatusLines lines) {
  // S2 is low for ports and acknowledges only, which are the fewest.
  std::sort(lines.begin(), lines.end(), [&](std::size_t a, std::size_t b) {
    return falls(activity.at_begin(a)) > falls(activity.at_begin(b));
  });
  const auto cycles = cycles_of(activity, lines);
  long balance = reads_after_acknowledges(cycles, kRead, kWrite);
  const bool sure = balance != 0;
  if (!sure) {
    for (const UnnamedCycle& cycle : cycles)
      balance += cycle.status == kRead ? 1 : cycle.status == kWrite ? -1 : 0;
  }
  if (balance < 0) std::swap(lines[0], lines[1]);
  return {lines, sure};
}

}  // namespace

std::optional<StatusMatch> find_status_lines(const ChannelActivity& activity, std::size_t clock) {
  struct Candidate {
    std::size_t channel;
    std::uint64_t falls;
  };
  std::vector<Candidate> candidates;
  for (std::size_t c = 0; c < activity.channels(); ++c) {
    const std::uint64_t count = c == clock ? 0 : falls(activity.at_begin(c));
    if (count > 0) candidates.push_back({c, count});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.falls > b.falls; });
  if (candidates.size() > kMostCandidates) candidates.resize(kMostCandidates);
  std::optional<StatusLines> best;
  std::uint64_t most = 0;
  const auto bits = [&](std::size_t i) -> const ClockBits& {
    return activity.at_begin(candidates[i].channel);
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    for (std::size_t j = i + 1; j < candidates.size(); ++j) {
      for (std::size_t k = j + 1; k < candidates.size(); ++k) {
        const std::uint64_t moves = candidates[i].falls + candidates[j].falls + candidates[k].falls;
        if (moves <= most || !is_status(bits(i), bits(j), bits(k))) continue;
        best = {candidates[i].channel, candidates[j].channel, candidates[k].channel};
        most = moves;
      }
    }
  }
  if (!best) return std::nullopt;
  return ordered(activity, *best);
}

std::vector<UnnamedCycle> cycles_of(const ChannelActivity& activity, const StatusLines& status) {
  constexpr unsigned kPassive = 7;
  std::vector<UnnamedCycle> cycles;
  unsigned before = 0;  // a cycle that is under way at the beginning has lost its address
  for (std::size_t clock = 0; clock < activity.clocks(); ++clock) {
    unsigned now = 0;
    for (unsigned i = 0; i < 3; ++i)
      now |= at_clock(activity.at_begin(status[i]), clock) ? 1U << i : 0U;
    if (before == kPassive && now != kPassive) {
      cycles.push_back({clock, 0, now});
    } else if (before != kPassive && now == kPassive && !cycles.empty()) {
      cycles.back().end = clock;
    }
    before = now;
  }
  if (!cycles.empty() && cycles.back().end == 0) cycles.pop_back();
  return cycles;
}

}  // namespace citcat
