// Values that cross no bus: time-stamp and performance counters, model-specific registers.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"
#include "replay/diagnose/internal_series.h"

namespace citcat {
namespace {

/// Values looked at that are in no lineage: the last ones before the divergence, and those that the
/// values around them contradict, anywhere.
constexpr std::size_t kMaxRecent = 48, kMaxDoubtful = 32;
/// How many values of the lineage, nearest first, are also tried with values that nothing supports.
constexpr std::size_t kThorough = 8;

// Prices of an internal value, besides those in cause_prices.h.
constexpr double kExpected = 0.5;   ///< one bit, and the values around it expect the result
constexpr double kPredicted = 1.3;  ///< what the values around it predict, whatever was recorded
constexpr double kSolved = 1.5, kNearby = 1.8;
constexpr double kUnrelated = 0.6;   ///< more, for a value that is in no lineage
constexpr double kLessLikely = 0.5;  ///< more, for leaving a counter's rate further
constexpr double kBackwards = 4;     ///< more, for a counter that runs backwards
constexpr double kMaxForSteps = 0.6;
constexpr double kPerRead = 0.005;
/// Values beside the recorded one: what a counter has when it is read some clocks later.
constexpr std::uint64_t kMaxOff = 8;

/// What one has to believe more than without the neighbours' word on it.
double neighbours_price(const InternalExpectation& expected, std::uint64_t recorded,
                        std::uint64_t value, bool one_bit) {
  constexpr std::uint64_t kMuch = 8;
  const double price = one_bit ? kOneGlitch : kNearby;
  if (!expected.allows(value)) return price + kBackwards;
  if (!expected.allows(recorded)) return one_bit ? kExpected : kPredicted;
  const auto now = expected.deviation(recorded), then = expected.deviation(value);
  if (!now) return price;
  if (*then < *now / kMuch || (*then == 0 && *now != 0)) return one_bit ? kExpected : kPredicted;
  return *then / kMuch > *now ? price + kLessLikely : price;
}

class InternalCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void internal_sources();

 private:
  void other_internal_values(std::size_t number, Position position, double price, bool thorough);
  std::vector<std::uint64_t> solved_from_bus(std::uint64_t value) const;

  InternalSeries series_{c_.schedule().internal_reads};
};

/// What the value would be if the bytes in question came of it by adding or by changing bits.
std::vector<std::uint64_t> InternalCauses::solved_from_bus(std::uint64_t value) const {
  std::vector<std::uint64_t> values;
  if (c_.mismatches().empty()) return values;
  const PhysAddr first = c_.mismatches().front().address;
  for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
    std::uint64_t shown = 0, ours = 0;
    for (const ByteMismatch& m : c_.mismatches()) {
      const std::uint64_t offset = m.address.value - first.value / size * size;
      if (offset >= size) continue;
      shown |= std::uint64_t{m.shown} << (8 * offset);
      ours |= std::uint64_t{m.ours} << (8 * offset);
    }
    for (const std::uint64_t v : {value + shown - ours, value - shown + ours, value ^ shown ^ ours})
      values.push_back(v);
  }
  values.push_back(c_.divergence().shown->value());
  return values;
}

/// Other values for one read. `thorough`: also such that nothing around it supports.
void InternalCauses::other_internal_values(std::size_t number, Position position, double price,
                                           bool thorough) {
  const InternalRead& read = c_.schedule().internal_reads[number];
  const std::uint64_t recorded = read.value();
  const InternalExpectation expected = series_.expectation(number);
  std::map<std::uint64_t, double> values;
  const auto suggest = [&](std::uint64_t value, double its_price) {
    if (value == recorded || (!thorough && its_price >= kBackwards)) return;
    const auto known = values.try_emplace(value, its_price).first;
    known->second = std::min(known->second, its_price);
  };
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t value = recorded ^ std::uint64_t{1} << bit;
    suggest(value, neighbours_price(expected, recorded, value, true));
  }
  for (const std::uint64_t value : expected.predicted) suggest(value, kPredicted);
  if (thorough) {
    for (const std::uint64_t value : solved_from_bus(recorded)) {
      suggest(value, kSolved + (expected.allows(value) ? 0 : kBackwards));
    }
    for (std::uint64_t off = 1; off <= kMaxOff; ++off) {
      for (const std::uint64_t value : {recorded + off, recorded - off}) {
        suggest(value, neighbours_price(expected, recorded, value, false));
      }
    }
  }
  for (const auto& [value, its_price] : values) {
    Cause cause;
    cause.kind = CauseKind::internal_value;
    cause.text = fmt::format("{}{} gave {:x} and was recorded as {:x}", internal_read_name(read.op),
                             position.instruction != kNowhere
                                 ? fmt::format(" at instruction {}", position.instruction)
                                 : fmt::format(" number {}", number),
                             value, recorded);
    Hint hint;
    hint.kind = Hint::Kind::internal_read;
    hint.number = number;
    if (position.instruction != kNowhere) hint.position = position;
    hint.value = value;
    cause.hints.push_back(std::move(hint));
    cause.start = {{kNowhere, 0}, kNowhere, number};
    cause.price = its_price + price;
    out_.add(std::move(cause));
  }
}

/// Those in the lineage, then the last ones before the divergence, whatever became of them; and
/// further back those that the values around them contradict.
void InternalCauses::internal_sources() {
  const auto& reads = c_.schedule().internal_reads;
  const auto& steps = c_.history().steps();
  std::set<std::size_t> done;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::internal) continue;
    const auto number = c_.internal_number(s.number);
    if (!number || !done.insert(*number).second) continue;
    other_internal_values(*number, steps[s.number].position,
                          std::min(kPerStep * s.distance, kMaxForSteps), done.size() <= kThorough);
  }
  std::size_t recent = 0;
  for (auto n = c_.internal_numbers().rbegin(); n != c_.internal_numbers().rend(); ++n) {
    if (done.count(n->second) != 0) continue;
    if (recent == kMaxRecent) break;
    done.insert(n->second);
    other_internal_values(n->second, steps[n->first].position,
                          kUnrelated + kPerRead * static_cast<double>(recent), false);
    ++recent;
  }
  const std::size_t end =
      c_.internal_numbers().empty()
          ? static_cast<std::size_t>(c_.trials().internal_reads_before_history())
          : c_.internal_numbers().rbegin()->second + 1;
  std::size_t doubtful = 0;
  for (const std::size_t number : series_.doubtful(end)) {
    if (doubtful == kMaxDoubtful) break;
    if (!done.insert(number).second) continue;
    const InternalRead& read = reads[number];
    other_internal_values(number, read.position_known ? read.position : Position{kNowhere, 0},
                          kUnrelated, false);
    ++doubtful;
  }
  if (done.size() < end) {
    out_.left_out.push_back(
        fmt::format("{} of the {} values that crossed no bus before: they are too far back, and "
                    "those around them do not contradict them",
                    end - done.size(), end));
  }
}

}  // namespace

void internal_values(const CauseContext& context, CauseList& out) {
  if (!context.schedule().internal_reads.empty()) InternalCauses(context, out).internal_sources();
}

}  // namespace citcat
