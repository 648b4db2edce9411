#include "capture/inspect/address_lines.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace citcat {
namespace {

constexpr std::size_t kSharedLines = 8;   // AD0-AD7 carry addresses and data
constexpr std::size_t kPointerBytes = 4;  // offset and segment
constexpr std::size_t kFirstStatus = 16;  // A16-A19 carry S3-S6 from T2 on

class AddressFinder {
 public:
  AddressFinder(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
                const std::vector<std::size_t>& channels)
      : activity_(activity), channels_(channels) {
    for (const UnnamedCycle& cycle : cycles) {
      cycles_.push_back(cycle);
      if (cycle.is_fetch()) fetches_.push_back(cycle.begin);
    }
  }

  AddressMatch run() {
    find_counting_lines();
    for (std::size_t bit = 0; bit < chain_.size(); ++bit)
      set(bit, chain_[bit],
          bit == 0 ? "changes from one code fetch to the next"
                   : "changes when the lines below it wrap in code fetches");
    out_.in_order = chain_.size();
    if (chain_.size() < kSharedLines) return std::move(out_);
    find_status_lines();
    find_middle_lines();
    return std::move(out_);
  }

 private:
  /// What two fetches that follow each other say of the next line.
  enum class Step : std::uint8_t { broken, stays, wraps };
  struct Pair {
    std::size_t from, to;  ///< clocks
    Step step = Step::wraps;
  };

  bool address(std::size_t channel, std::size_t clock) const {
    return at_clock(activity_.at_begin(channel), clock);
  }
  bool changes(std::size_t channel, const Pair& pair) const {
    return address(channel, pair.from) != address(channel, pair.to);
  }
  void set(std::size_t bit, std::size_t channel, const std::string& reason) {
    out_.lines[bit] = {channel, reason};
    used_.insert(channel);
  }

  /// Neighbouring fetches, those of a loop that runs often only once: a jump that is taken a
  /// thousand times would look like a thousand steps.
  std::vector<Pair> distinct_pairs() const {
    std::set<std::vector<bool>> seen;
    std::vector<Pair> pairs;
    for (std::size_t i = 1; i < fetches_.size(); ++i) {
      std::vector<bool> levels;
      for (const std::size_t c : channels_) {
        levels.push_back(address(c, fetches_[i - 1]));
        levels.push_back(address(c, fetches_[i]));
      }
      if (seen.insert(std::move(levels)).second) pairs.push_back({fetches_[i - 1], fetches_[i]});
    }
    return pairs;
  }

  /// How well a channel fits as the next line: the wraps it follows less the other changes, as
  /// parts of one; nothing when it is none.
  std::optional<double> fit(std::size_t channel, const std::vector<Pair>& pairs) const {
    constexpr double kFewestWraps = 3, kFollowed = 0.75, kOther = 0.1;
    double wraps = 0, followed = 0, stays = 0, other = 0;
    for (const Pair& pair : pairs) {
      const bool changed = pair.step != Step::broken && changes(channel, pair);
      wraps += pair.step == Step::wraps ? 1 : 0;
      stays += pair.step == Step::stays ? 1 : 0;
      followed += pair.step == Step::wraps && changed ? 1 : 0;
      other += pair.step == Step::stays && changed ? 1 : 0;
    }
    if (wraps < kFewestWraps || followed < kFollowed * wraps || other > kOther * stays)
      return std::nullopt;
    return followed / wraps - (stays > 0 ? other / stays : 0);
  }

  void advance(std::size_t channel, std::vector<Pair>& pairs) const {
    for (Pair& pair : pairs) {
      if (pair.step == Step::broken) continue;
      if (changes(channel, pair) != (pair.step == Step::wraps)) {
        pair.step = Step::broken;
      } else if (pair.step == Step::wraps && address(channel, pair.to)) {
        pair.step = Step::stays;
      }
    }
  }

  /// The lines from `first` on as far as they are seen to count.
  std::vector<std::size_t> chain_from(std::size_t first, std::vector<Pair>& pairs) const {
    std::vector<std::size_t> chain{first};
    advance(first, pairs);
    while (chain.size() < kFirstStatus) {
      std::optional<std::pair<double, std::size_t>> best;
      for (const std::size_t c : channels_) {
        if (std::find(chain.begin(), chain.end(), c) != chain.end()) continue;
        const auto fits = fit(c, pairs);
        if (fits && (!best || *fits > best->first)) best = {*fits, c};
      }
      if (!best) break;
      chain.push_back(best->second);
      advance(best->second, pairs);
    }
    return chain;
  }

  void find_counting_lines() {
    constexpr std::size_t kTried = 6;
    const std::vector<Pair> pairs = distinct_pairs();
    std::vector<std::pair<std::size_t, std::size_t>> by_changes;
    for (const std::size_t c : channels_)
      by_changes.emplace_back(std::count_if(pairs.begin(), pairs.end(),
                                            [&](const Pair& pair) { return changes(c, pair); }),
                              c);
    std::sort(by_changes.rbegin(), by_changes.rend());
    for (std::size_t i = 0; i < std::min(kTried, by_changes.size()); ++i) {
      std::vector<Pair> followed = pairs;
      std::vector<std::size_t> chain = chain_from(by_changes[i].second, followed);
      if (chain.size() <= chain_.size()) continue;
      chain_ = std::move(chain);
      steps_ = std::move(followed);
    }
  }

  /// How a channel moves that may be a line above those that were seen counting.
  struct Motion {
    std::size_t changes = 0;       ///< at T1, from one cycle of memory to the next
    std::size_t within = 0;        ///< cycles in which T3 differs from T1
    std::size_t late_changes = 0;  ///< at T3, from one cycle to the next
    std::size_t cycles = 0, fetches = 0;
    std::size_t late_high = 0;       ///< cycles with T3 high
    std::size_t late_high_code = 0;  ///< of them fetches
    std::size_t odd_steps = 0;       ///< changes between fetches in order, with nothing wrapped
    std::size_t steps = 0;

    std::size_t data() const { return cycles - fetches; }
    std::size_t late_high_data() const { return late_high - late_high_code; }
  };

  Motion motion_of(std::size_t channel) const {
    Motion m;
    std::optional<bool> before, late_before;
    for (const UnnamedCycle& cycle : cycles_) {
      if (!cycle.is_memory()) continue;
      const bool early = address(channel, cycle.begin), late = address(channel, cycle.end - 1);
      m.changes += before && *before != early ? 1 : 0;
      m.late_changes += late_before && *late_before != late ? 1 : 0;
      m.within += early != late ? 1 : 0;
      m.late_high += late ? 1 : 0;
      m.late_high_code += late && cycle.is_fetch() ? 1 : 0;
      m.fetches += cycle.is_fetch() ? 1 : 0;
      ++m.cycles;
      before = early;
      late_before = late;
    }
    for (const Pair& pair : steps_) {
      if (pair.step != Step::stays) continue;
      ++m.steps;
      m.odd_steps += changes(channel, pair) ? 1 : 0;
    }
    return m;
  }

  static bool is_few(std::size_t part, std::size_t whole) { return part * 50 <= whole; }
  static bool is_address(const Motion& m) { return m.changes > 0 && is_few(m.odd_steps, m.steps); }

  /// Whether T3 shows something else than T1, as slow signals do not: an address changes more often
  /// than the status after it, or most cycles have both levels and the status does change.
  static bool has_phases(const Motion& m) {
    return (m.changes > 0 && m.late_changes * 4 <= m.changes) ||
           (m.late_changes > 0 && !is_few(m.within, m.cycles));
  }

  /// S4 and S3 say which segment, code being 10; S5 is the interrupt flag and S6 low (8088 data
  /// sheet, "Status Bits").
  void find_status_lines() {
    for (const std::size_t c : channels_) {
      const Motion m = motion_of(c);
      if (used_.count(c) != 0 || m.within == 0 || !is_few(m.odd_steps, m.steps)) continue;
      // S3 and S4 are not as the address is in most cycles, which sets them apart from slow
      // signals.
      const bool differs = !is_few(m.within, m.cycles);
      const bool data_high = differs && !is_few(m.late_high_data(), m.data());
      const bool data_low = differs && !is_few(m.data() - m.late_high_data(), m.data());
      const std::size_t low_code = m.fetches - m.late_high_code;
      if (is_few(m.late_high_code, m.fetches) && data_high && !out_.lines[16]) {
        set(16, c, "shows S3 after T1: low in code fetches");
      } else if (is_few(low_code, m.fetches) && data_low && !out_.lines[17]) {
        set(17, c, "shows S4 after T1: high in code fetches");
      } else if (is_few(m.late_changes, m.cycles) && has_phases(m)) {
        place_steady(c, m.late_high > 0);
      }
    }
  }

  void place_steady(std::size_t channel, bool ever_high) {
    if (ever_high && !out_.lines[18]) {
      set(18, channel, "shows S5, the interrupt flag, after T1");
    } else if (!ever_high && !out_.lines[19]) {
      set(19, channel, "shows S6 after T1: always low");
    }
  }

  /// An address that is known without the lines that are looked for.
  struct Known {
    std::size_t clock = 0;  ///< its T1
    std::uint32_t address = 0;
  };

  std::uint8_t data_of(const UnnamedCycle& cycle) const {
    unsigned byte = 0;
    for (std::size_t bit = 0; bit < kSharedLines; ++bit)
      byte |= at_clock(activity_.at_end(chain_[bit]), cycle.end) ? 1U << bit : 0U;
    return static_cast<std::uint8_t>(byte);
  }
  /// The address at a clock, as far as lines were seen to count.
  std::uint32_t low_bits(std::size_t clock) const {
    std::uint32_t value = 0;
    for (std::size_t bit = 0; bit < chain_.size(); ++bit)
      value |= address(chain_[bit], clock) ? 1U << bit : 0U;
    return value;
  }
  bool low_bits_are(std::size_t clock, std::uint32_t value) const {
    return low_bits(clock) == (value & ((1U << chain_.size()) - 1));
  }

  /// After an interrupt acknowledge four bytes are read at four times the vector.
  void learn_from_acknowledge(std::size_t second, std::vector<Known>& known) const {
    const std::uint32_t table = data_of(cycles_[second]) * 4U;
    unsigned read = 0;
    for (std::size_t i = second + 1; i < cycles_.size() && read < kPointerBytes; ++i) {
      if (!cycles_[i].is_read()) continue;
      if (!low_bits_are(cycles_[i].begin, table + read)) return;
      known.push_back({cycles_[i].begin, table + read});
      ++read;
    }
  }

  /// Four bytes that were read one after the other are often a far pointer: of an interrupt, IRET,
  /// RETF, a far call. Where soon after them code is fetched at its low bits, it is fetched there.
  void learn_from_pointer(const std::vector<std::size_t>& reads, std::size_t last,
                          std::vector<Known>& known) const {
    constexpr std::size_t kSoon = 16;
    const std::uint32_t first = low_bits(cycles_[reads[last - 3]].begin);
    const std::uint32_t mask = (1U << chain_.size()) - 1;
    std::uint32_t pointer = 0;
    for (std::uint32_t n = 0; n < kPointerBytes; ++n) {
      const UnnamedCycle& cycle = cycles_[reads[last - 3 + n]];
      if (low_bits(cycle.begin) != ((first + n) & mask)) return;
      pointer |= std::uint32_t{data_of(cycle)} << (8 * n);
    }
    const std::uint32_t target = ((pointer >> 16) * 16 + (pointer & 0xffff)) & 0xfffff;
    // Fetches that go on in order are no transfer.
    std::optional<std::uint32_t> in_order;
    std::size_t i = reads[last - 3];
    while (i > 0 && !cycles_[i].is_fetch()) --i;
    for (; i < cycles_.size() && i < reads[last] + kSoon; ++i) {
      if (!cycles_[i].is_fetch()) continue;
      const std::uint32_t at = low_bits(cycles_[i].begin);
      if (i > reads[last] && in_order && at != *in_order && at == (target & mask)) {
        known.push_back({cycles_[i].begin, target});
        return;
      }
      in_order = (at + 1) & mask;
    }
  }

  std::vector<Known> known_addresses() const {
    std::vector<Known> known;
    std::vector<std::size_t> reads;
    for (std::size_t i = 1; i < cycles_.size(); ++i) {
      if (cycles_[i].is_acknowledge() && cycles_[i - 1].is_acknowledge())
        learn_from_acknowledge(i, known);
      if (cycles_[i].is_read()) reads.push_back(i);
    }
    for (std::size_t last = kPointerBytes - 1; last < reads.size(); ++last)
      learn_from_pointer(reads, last, known);
    return known;
  }

  bool agrees(std::size_t channel, std::size_t bit, const std::vector<Known>& known) const {
    std::size_t wrong = 0;
    for (const Known& k : known)
      wrong += address(channel, k.clock) != (((k.address >> bit) & 1) != 0) ? 1 : 0;
    // Some pointers are none.
    return wrong * 10 <= known.size();
  }

  /// Finds the lines that have no bus phase of their own and were not seen to count: by known
  /// addresses, and those that these do not distinguish by the order of the channels.
  void find_middle_lines() {
    std::vector<std::size_t> candidates;
    for (const std::size_t c : channels_) {
      const Motion m = motion_of(c);
      if (used_.count(c) == 0 && is_address(m) && is_few(m.within, m.changes))
        candidates.push_back(c);
    }
    const std::vector<Known> known = known_addresses();
    for (std::size_t bit = chain_.size(); bit < kFirstStatus; ++bit) {
      std::vector<std::size_t> fitting;
      for (const std::size_t c : candidates)
        if (agrees(c, bit, known)) fitting.push_back(c);
      const auto first = std::find_if(fitting.begin(), fitting.end(),
                                      [&](std::size_t c) { return used_.count(c) == 0; });
      if (first == fitting.end()) continue;
      const bool alone = fitting.size() == 1;
      set(bit, *first,
          alone ? "the only channel that agrees with far pointers and where they lead"
                : "an address line; by the order of the channels");
      if (!alone) out_.by_order.push_back(bit);
    }
  }

  const ChannelActivity& activity_;
  const std::vector<std::size_t>& channels_;
  std::vector<UnnamedCycle> cycles_;
  std::vector<std::size_t> fetches_;  ///< clocks of T1
  std::vector<std::size_t> chain_;    ///< A0 and up
  std::vector<Pair> steps_;           ///< fetches, as far as chain_ says
  std::set<std::size_t> used_;
  AddressMatch out_;
};

}  // namespace

AddressMatch find_address_lines(const ChannelActivity& activity,
                                const std::vector<UnnamedCycle>& cycles,
                                const std::vector<std::size_t>& channels) {
  return AddressFinder(activity, cycles, channels).run();
}

}  // namespace citcat
