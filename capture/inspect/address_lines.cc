#include "capture/inspect/address_lines.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace citcat {
namespace {

constexpr std::size_t kPointerBytes = 4;  // offset and segment
constexpr std::size_t kFirstStatus = 16;  // A16-A19 carry S3-S6 from T2 on

bool is_few(std::size_t part, std::size_t whole) { return part * 50 <= whole; }

class AddressFinder {
 public:
  AddressFinder(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
                const std::vector<std::size_t>& channels, const LineShape& shape)
      : activity_(activity),
        cycles_(cycles),
        channels_(channels),
        shape_(shape),
        counting_(activity, cycles, channels,
                  (shape.shares_data ? kFirstStatus : shape.end) - shape.first, !shape.shares_data),
        trace_(activity_, cycles_, known_) {
    out_.lines.resize(shape.end);
    if (!shape.shares_data) out_.data.resize(shape.data_lines);
  }

  AddressMatch run() {
    set_counting_lines();
    out_.problem = shape_.is_wide() ? find_wide_bus() : problem_of_narrow_bus();
    if (!out_.problem.empty()) return std::move(out_);
    if (shape_.has_status) find_status_lines();
    find_middle_lines();
    return std::move(out_);
  }

 private:
  bool address(std::size_t channel, std::size_t clock) const {
    return at_clock(activity_.at_begin(channel), clock);
  }
  void set(std::size_t bit, std::size_t channel, const std::string& reason) {
    out_.lines[bit] = {channel, reason};
    used_.insert(channel);
  }
  std::vector<std::size_t> unused() const {
    std::vector<std::size_t> channels;
    for (const std::size_t c : channels_)
      if (used_.count(c) == 0) channels.push_back(c);
    return channels;
  }

  void set_counting_lines() {
    known_.first = shape_.first;
    known_.is_wide = shape_.is_wide();
    known_.chain = counting_.chain();
    for (std::size_t i = 0; i < known_.chain.size(); ++i)
      set(shape_.first + i, known_.chain[i],
          i == 0 ? "changes from one code fetch to the next"
                 : "changes when the lines below it wrap in code fetches");
    out_.in_order = known_.chain.size();
  }

  std::string problem_of_narrow_bus() {
    if (known_.chain.size() < shape_.data_lines) return too_few_lines(shape_.data_lines);
    known_.data.assign(known_.chain.begin(),
                       known_.chain.begin() + static_cast<std::ptrdiff_t>(shape_.data_lines));
    return {};
  }
  std::string too_few_lines(std::size_t needed) const {
    return "only " + std::to_string(out_.in_order) + " lines that count as code is fetched, of " +
           std::to_string(needed) + " (a longer capture may show more)";
  }

  /// What selects bytes, and which data line is which. What was not found.
  std::string find_wide_bus() {
    constexpr std::size_t kFewestLines = 5;
    if (known_.chain.size() < kFewestLines) return too_few_lines(kFewestLines);
    const auto enables = find_byte_enables(activity_, cycles_, unused(), known_.chain);
    const char* const low = shape_.has_low_line ? "A0" : "BLE#";
    if (!enables)
      return std::string("no two lines that move as ") + low + " and BHE# do: never both high";
    known_.low_enable = enables->low;
    known_.high_enable = enables->high;
    const FoundLine low_line{enables->low, "high where only the upper byte is moved"};
    out_.high_enable = {enables->high, "high where only the lower byte is moved, low in fetches"};
    if (shape_.has_low_line) {
      out_.lines[0] = low_line;
    } else {
      out_.low_enable = low_line;
    }
    used_.insert(enables->low);
    used_.insert(enables->high);
    if (!enables->sure)
      out_.doubts.push_back(std::string(low) +
                            " and BHE#: the capture does not show which of them is which");
    return order_data();
  }

  /// A channel that may carry data: in code fetches, what it shows depends on the address.
  struct DataMotion {
    std::size_t channel = 0, places = 0, rarer = 0, repeats = 0, contradictions = 0;
    bool is_data() const { return rarer * 50 > places && contradictions * 20 <= repeats; }
  };
  std::vector<DataMotion> data_motions() const {
    std::vector<std::size_t> quiet;
    for (const std::size_t c : unused())
      if (counting_.is_quiet(c)) quiet.push_back(c);
    // The place of each fetch, as a number, and where it was read first.
    std::map<std::pair<std::uint32_t, std::vector<bool>>, std::size_t> places;
    std::vector<std::pair<std::size_t, std::size_t>>
        fetches;  // the clocks of data, there and first
    for (const UnnamedCycle& cycle : cycles_) {
      if (!cycle.is_fetch() || address(known_.low_enable, cycle.begin)) continue;
      std::vector<bool> above;
      for (const std::size_t q : quiet) above.push_back(address(q, cycle.begin));
      const auto [place, is_new] =
          places.insert({{trace_.place(cycle), std::move(above)}, cycle.end});
      fetches.emplace_back(cycle.end, place->second);
    }
    std::vector<DataMotion> motions;
    for (const std::size_t c : unused()) {
      // The next address may be there before the data.
      if (!shape_.shares_data && counting_.is_quiet(c)) continue;
      DataMotion motion{.channel = c, .places = places.size()};
      std::size_t high = 0;
      for (const auto& [clock, first] : fetches) {
        const bool level = at_clock(activity_.at_end(c), clock);
        if (clock == first) {
          high += level ? 1 : 0;
          continue;
        }
        ++motion.repeats;
        motion.contradictions += at_clock(activity_.at_end(c), first) != level ? 1 : 0;
      }
      motion.rarer = std::min(high, motion.places - high);
      if (motion.is_data()) motions.push_back(motion);
    }
    std::stable_sort(motions.begin(), motions.end(),
                     [](const DataMotion& a, const DataMotion& b) { return a.rarer > b.rarer; });
    return motions;
  }

  std::string order_data() {
    std::array<std::optional<std::size_t>, DataOrder::kLines> fixed;
    known_.data.assign(DataOrder::kLines, 0);
    std::vector<std::size_t> open;  // places in known_.data
    for (std::size_t bit = 0; bit < DataOrder::kLines; ++bit) {
      if (shape_.shares_data && out_.lines[bit]) {
        fixed[bit] = bit;
        known_.data[bit] = out_.lines[bit]->channel;
      } else {
        open.push_back(bit);
      }
    }
    const std::vector<DataMotion> motions = data_motions();
    if (motions.size() < open.size())
      return "only " + std::to_string(motions.size()) + " more lines that carry code, of " +
             std::to_string(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) known_.data[open[i]] = motions[i].channel;
    const auto transfers = trace_.transfers();
    const auto order = order_data_lines(transfers, known_.known_bits(), fixed);
    if (!order)
      return "found no order of the data lines in which the jumps of the code lead to where code "
             "is fetched (a longer capture may show more)";
    const std::vector<std::size_t> channels = known_.data;
    const std::string reason = "with it " + std::to_string(order->explained) + " of " +
                               std::to_string(order->of) + " transfers lead where code is fetched";
    for (std::size_t bit = 0; bit < DataOrder::kLines; ++bit) {
      known_.data[bit] = channels[order->line[bit]];
      if (fixed[bit]) continue;
      (shape_.shares_data ? out_.lines : out_.data)[bit] = {known_.data[bit], reason};
      used_.insert(known_.data[bit]);
    }
    const char* const stem = shape_.shares_data ? "AD" : "D";
    for (const auto& [a, b] : order->alike)
      out_.doubts.push_back(stem + std::to_string(a) + " and " + stem + std::to_string(b) +
                            ": no jump of the code tells them apart");
    data_is_sure_ = order->alike.empty();
    return {};
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
    m.steps = counting_.steps();
    m.odd_steps = counting_.odd_steps(channel);
    return m;
  }

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

  /// The bytes of all reads, in order.
  std::vector<ByteAccess> bytes_read() const {
    std::vector<ByteAccess> bytes;
    for (std::size_t i = 0; i < cycles_.size(); ++i) {
      if (!cycles_[i].is_read()) continue;
      for (const RawByte& byte : trace_.bytes(cycles_[i])) bytes.push_back({i, byte});
    }
    return bytes;
  }
  /// Lines in their order are levels in their order.
  static std::uint8_t value(const RawByte& byte) {
    return static_cast<std::uint8_t>(byte.upper ? byte.lines >> 8 : byte.lines);
  }
  Known known_at(const ByteAccess& access, std::uint32_t address) const {
    // The upper byte of a word is on the bus with the address of the lower one.
    return {cycles_[access.cycle].begin, address - (access.byte.place - low_bits(access))};
  }
  std::uint32_t low_bits(const ByteAccess& access) const {
    return trace_.place(cycles_[access.cycle]);
  }

  /// After an interrupt acknowledge four bytes are read at four times the vector.
  void learn_from_acknowledge(std::size_t second, const std::vector<ByteAccess>& read,
                              std::vector<Known>& known) const {
    const std::uint32_t table = value(trace_.bytes(cycles_[second])[0]) * 4U;
    auto byte = std::find_if(read.begin(), read.end(),
                             [&](const ByteAccess& access) { return access.cycle > second; });
    for (std::uint32_t n = 0; n < kPointerBytes && byte != read.end(); ++n, ++byte) {
      if (byte->byte.place != ((table + n) & known_.mask())) return;
      known.push_back(known_at(*byte, table + n));
    }
  }

  /// Four bytes that were read one after the other are often a far pointer: of an interrupt, IRET,
  /// RETF, a far call. Where soon after them code is fetched at its low bits, it is fetched there.
  void learn_from_pointer(const std::vector<ByteAccess>& read, std::size_t last,
                          std::vector<Known>& known) const {
    constexpr std::size_t kSoon = 16;
    const ByteAccess* const first = &read[last + 1 - kPointerBytes];
    std::uint32_t pointer = 0;
    for (std::uint32_t n = 0; n < kPointerBytes; ++n) {
      if (first[n].byte.place != ((first->byte.place + n) & known_.mask())) return;
      pointer |= std::uint32_t{value(first[n].byte)} << (8 * n);
    }
    const std::uint32_t target = target_of(pointer);
    // Fetches that go on in order are no transfer.
    std::optional<std::uint32_t> in_order;
    std::size_t i = first->cycle;
    while (i > 0 && !cycles_[i].is_fetch()) --i;
    for (; i < cycles_.size() && i < read[last].cycle + kSoon; ++i) {
      if (!cycles_[i].is_fetch()) continue;
      const std::uint32_t at = trace_.place(cycles_[i]);
      if (i > read[last].cycle && in_order && at != *in_order && at == (target & known_.mask())) {
        known.push_back({cycles_[i].begin, target});
        return;
      }
      in_order = (trace_.bytes(cycles_[i]).back().place + 1) & known_.mask();
    }
  }
  std::uint32_t target_of(std::uint32_t pointer) const {
    const std::uint32_t all = (std::uint32_t{1} << shape_.end) - 1;
    return ((pointer >> 16) * 16 + (pointer & 0xffff)) & all;
  }

  /// Far jumps and calls that were fetched before code is fetched where they lead.
  void learn_from_code(std::vector<Known>& known) const {
    constexpr std::size_t kKept = 22;
    constexpr std::uint8_t kFarJump = 0xea, kFarCall = 0x9a;
    std::vector<std::uint8_t> code;
    std::optional<std::uint32_t> next;
    for (const UnnamedCycle& cycle : cycles_) {
      if (!cycle.is_fetch()) continue;
      const auto bytes = trace_.bytes(cycle);
      if (next && bytes[0].place != *next) {
        for (std::size_t i = 0; i + kPointerBytes < code.size(); ++i) {
          if (code[i] != kFarJump && code[i] != kFarCall) continue;
          std::uint32_t pointer = 0;
          for (std::size_t n = kPointerBytes; n != 0; --n) pointer = pointer << 8 | code[i + n];
          const std::uint32_t target = target_of(pointer);
          if ((target & known_.mask()) == bytes[0].place) known.push_back({cycle.begin, target});
        }
        code.clear();
      }
      for (const RawByte& byte : bytes) code.push_back(value(byte));
      if (code.size() > kKept) code.erase(code.begin(), code.end() - kKept);
      next = (bytes.back().place + 1) & known_.mask();
    }
  }

  std::vector<Known> known_addresses() const {
    std::vector<Known> known;
    const std::vector<ByteAccess> read = bytes_read();
    for (std::size_t i = 1; i < cycles_.size(); ++i)
      if (cycles_[i].is_acknowledge() && cycles_[i - 1].is_acknowledge())
        learn_from_acknowledge(i, read, known);
    for (std::size_t last = kPointerBytes - 1; last < read.size(); ++last)
      learn_from_pointer(read, last, known);
    learn_from_code(known);
    // Each place once: the handler of an interrupt says no more than where it came in.
    std::sort(known.begin(), known.end(),
              [](const Known& a, const Known& b) { return a.address < b.address; });
    known.erase(std::unique(known.begin(), known.end(),
                            [](const Known& a, const Known& b) { return a.address == b.address; }),
                known.end());
    return known;
  }

  /// The candidates that agree best with the addresses that are known, as far as these tell.
  static std::vector<std::size_t> fitting(const std::vector<std::size_t>& candidates,
                                          const std::vector<std::size_t>& wrong, std::size_t fewest,
                                          std::size_t known) {
    std::vector<std::size_t> fit;
    // Some pointers are none; those are wrong for all alike.
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (wrong[i] * 10 <= known && wrong[i] <= fewest + fewest / 4 + 1)
        fit.push_back(candidates[i]);
    return fit;
  }
  std::vector<std::size_t> wrong_levels(const std::vector<std::size_t>& candidates, std::size_t bit,
                                        const std::vector<Known>& known) const {
    std::vector<std::size_t> wrong;
    for (const std::size_t c : candidates)
      wrong.push_back(
          static_cast<std::size_t>(std::count_if(known.begin(), known.end(), [&](const Known& k) {
            return address(c, k.clock) != (((k.address >> bit) & 1) != 0);
          })));
    return wrong;
  }

  /// Finds the lines that were not seen to count: by known addresses, and those that these do not
  /// distinguish by the order of the channels.
  void find_middle_lines() {
    std::vector<std::size_t> steady, others;
    for (const std::size_t c : unused()) {
      const Motion m = motion_of(c);
      if (!is_address(m)) continue;
      // The pins of one bus show other things after the address.
      const bool is_steady = !shape_.shares_data || is_few(m.within, m.changes);
      (is_steady ? steady : others).push_back(c);
    }
    const std::vector<Known> known = known_addresses();
    const auto is_free = [&](std::size_t c) { return used_.count(c) == 0; };
    // Where A18 or A19 shows its status after the address, both do if they are probed.
    const bool by_status = shape_.has_status && (out_.lines[18] || out_.lines[19]);
    for (std::size_t bit = shape_.first; bit < (by_status ? kFirstStatus : shape_.end); ++bit) {
      if (out_.lines[bit]) continue;
      const auto wrong = wrong_levels(steady, bit, known), more = wrong_levels(others, bit, known);
      std::size_t fewest = known.size();
      for (const auto& list : {wrong, more})
        for (const std::size_t n : list) fewest = std::min(fewest, n);
      std::vector<std::size_t> fit = fitting(steady, wrong, fewest, known.size());
      if (!known.empty()) {
        const auto also = fitting(others, more, fewest, known.size());
        fit.insert(fit.end(), also.begin(), also.end());
      }
      const auto first = std::find_if(fit.begin(), fit.end(), is_free);
      if (first == fit.end()) continue;
      const bool alone = fit.size() == 1 && data_is_sure_;
      set(bit, *first,
          alone ? "the only channel that agrees with far pointers and where they lead"
                : "an address line; by the order of the channels");
      if (!alone) out_.by_order.push_back(bit);
    }
  }

  const ChannelActivity& activity_;
  const std::vector<UnnamedCycle>& cycles_;
  const std::vector<std::size_t>& channels_;
  LineShape shape_;
  CountingLines counting_;
  KnownLines known_;
  CodeTrace trace_;
  std::set<std::size_t> used_;
  bool data_is_sure_ = true;
  AddressMatch out_;
};

}  // namespace

AddressMatch find_address_lines(const ChannelActivity& activity,
                                const std::vector<UnnamedCycle>& cycles,
                                const std::vector<std::size_t>& channels, const LineShape& shape) {
  return AddressFinder(activity, cycles, channels, shape).run();
}

}  // namespace citcat
