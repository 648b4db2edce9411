// Values that cross no bus: time-stamp and performance counters, model-specific registers.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/diagnose/cause_finder.h"
#include "replay/diagnose/internal_series.h"

namespace citcat {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};

/// Values looked at that are in no lineage: the last ones before the divergence, and those that the
/// values around them contradict, anywhere.
constexpr std::size_t kMaxRecent = 48, kMaxDoubtful = 32;
/// Of the lineage, nearest first: those of which also values are tried that nothing supports.
constexpr std::size_t kThorough = 8;

// Prices (cause_finder_memory.cc).
constexpr double kExpected = 0.5;  ///< one bit, and the values around it expect the result
constexpr double kOneBit = 1;
constexpr double kPredicted = 1.3;  ///< what the values around it predict, whatever was recorded
constexpr double kSolved = 1.5, kNear = 1.8;
constexpr double kUnrelated = 0.6;   ///< more, for a value that is in no lineage
constexpr double kLessLikely = 0.5;  ///< more, for leaving a counter's rate further
constexpr double kBackwards = 4;     ///< more, for a counter that runs backwards
constexpr double kPerStep = 0.02, kMaxForSteps = 0.6;
constexpr double kPerRead = 0.005;
/// Values beside the recorded one: what a counter has when it is read some clocks later.
constexpr std::uint64_t kMaxOff = 8;

std::optional<InternalRead::Op> op_of(InstructionClass c) {
  switch (c) {
    case InstructionClass::rdtsc:
      return InternalRead::Op::rdtsc;
    case InstructionClass::rdmsr:
      return InternalRead::Op::rdmsr;
    case InstructionClass::wrmsr:
      return InternalRead::Op::wrmsr;
    case InstructionClass::cpuid:
      return InternalRead::Op::cpuid;
    case InstructionClass::rdpmc:
      return InternalRead::Op::rdpmc;
    default:
      return std::nullopt;
  }
}

/// What one has to believe more than without the neighbours' word on it.
double neighbours_price(const InternalExpectation& expected, std::uint64_t recorded,
                        std::uint64_t value, bool one_bit) {
  constexpr std::uint64_t kMuch = 8;
  const double price = one_bit ? kOneBit : kNear;
  if (!expected.allows(value)) return price + kBackwards;
  if (!expected.allows(recorded)) return one_bit ? kExpected : kPredicted;
  const auto now = expected.deviation(recorded), then = expected.deviation(value);
  if (!now) return price;
  if (*then < *now / kMuch || (*then == 0 && *now != 0)) return one_bit ? kExpected : kPredicted;
  return *then / kMuch > *now ? price + kLessLikely : price;
}

}  // namespace

/// The replay takes them in order, each for the next instruction of its kind.
void CauseFinder::number_internal_reads() {
  const auto& reads = schedule_.internal_reads;
  const auto& steps = history_.steps();
  std::size_t next = static_cast<std::size_t>(trials_.internal_reads_before_history());
  for (std::size_t i = 0; i < steps.size() && next < reads.size(); ++i) {
    const auto op = op_of(steps[i].instruction_class);
    const InternalRead& read = reads[next];
    const bool here =
        !read.position_known || read.position.instruction == steps[i].position.instruction;
    if (steps[i].kind != HistoryStep::Kind::instruction || op != read.op || !here) continue;
    internal_numbers_[i] = next++;
  }
}

std::optional<std::size_t> CauseFinder::internal_number(std::size_t step) const {
  const auto found = internal_numbers_.find(step);
  if (found == internal_numbers_.end()) return std::nullopt;
  return found->second;
}

/// What the value would be if the bytes in question came of it by adding or by changing bits.
std::vector<std::uint64_t> CauseFinder::solved_from_bus(std::uint64_t value) const {
  std::vector<std::uint64_t> values;
  if (mismatches_.empty()) return values;
  const PhysAddr first = mismatches_.front().address;
  for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
    std::uint64_t shown = 0, ours = 0;
    for (const Mismatch& m : mismatches_) {
      const std::uint32_t offset = m.address.value - first.value / size * size;
      if (offset >= size) continue;
      shown |= std::uint64_t{m.shown} << (8 * offset);
      ours |= std::uint64_t{m.ours} << (8 * offset);
    }
    for (const std::uint64_t v : {value + shown - ours, value - shown + ours, value ^ shown ^ ours})
      values.push_back(v);
  }
  values.push_back(divergence_.shown->value());
  return values;
}

/// Other values for one read. `thorough`: also such that nothing around it supports.
void CauseFinder::other_internal_values(std::size_t number, Position position, double price,
                                        bool thorough) {
  const InternalRead& read = schedule_.internal_reads[number];
  const std::uint64_t recorded = internal_value(read);
  const InternalExpectation expected = series_->expectation(number);
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
                             position.instruction != kEnd
                                 ? fmt::format(" at instruction {}", position.instruction)
                                 : fmt::format(" number {}", number),
                             value, recorded);
    Hint hint;
    hint.kind = Hint::Kind::internal_read;
    hint.number = number;
    if (position.instruction != kEnd) hint.position = position;
    hint.value = value;
    cause.hints.push_back(std::move(hint));
    cause.start = {{kEnd, 0}, kEnd, number};
    cause.price = its_price + price;
    add(std::move(cause));
  }
}

/// Those in the lineage, then the last ones before the divergence, whatever became of them; and
/// further back those that the values around them contradict.
void CauseFinder::internal_sources() {
  const auto& reads = schedule_.internal_reads;
  const auto& steps = history_.steps();
  if (reads.empty()) return;
  series_ = std::make_unique<InternalSeries>(reads);
  std::set<std::size_t> done;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::internal) continue;
    const auto number = internal_number(s.number);
    if (!number || !done.insert(*number).second) continue;
    other_internal_values(*number, steps[s.number].position,
                          std::min(kPerStep * s.distance, kMaxForSteps), done.size() <= kThorough);
  }
  std::size_t recent = 0;
  for (auto n = internal_numbers_.rbegin(); n != internal_numbers_.rend(); ++n) {
    if (done.count(n->second) != 0) continue;
    if (recent == kMaxRecent) break;
    done.insert(n->second);
    other_internal_values(n->second, steps[n->first].position,
                          kUnrelated + kPerRead * static_cast<double>(recent), false);
    ++recent;
  }
  const std::size_t end = internal_numbers_.empty()
                              ? static_cast<std::size_t>(trials_.internal_reads_before_history())
                              : internal_numbers_.rbegin()->second + 1;
  std::size_t doubtful = 0;
  for (const std::size_t number : series_->doubtful(end)) {
    if (doubtful == kMaxDoubtful) break;
    if (!done.insert(number).second) continue;
    const InternalRead& read = reads[number];
    other_internal_values(number, read.position_known ? read.position : Position{kEnd, 0},
                          kUnrelated, false);
    ++doubtful;
  }
  if (done.size() < end) {
    left_out_.push_back(
        fmt::format("{} of the {} values that crossed no bus before: they are too far back, and "
                    "those around them do not contradict them",
                    end - done.size(), end));
  }
}

}  // namespace citcat
