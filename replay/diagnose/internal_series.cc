#include "replay/diagnose/internal_series.h"

#include <algorithm>
#include <cmath>

namespace citcat {
namespace {

/// Neighbours on each side that a counter's rate is taken from.
constexpr std::size_t kRateOver = 16;
/// A series this short is nothing to judge by.
constexpr std::size_t kFewest = 3;
/// How many times nearer to its rate one changed bit must bring a doubtful value.
constexpr std::uint64_t kMuchNearer = 16;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

bool InternalExpectation::allows(std::uint64_t value) const {
  if (low && high && *low > *high) return true;
  return (!low || value >= *low) && (!high || value <= *high);
}

std::optional<std::uint64_t> InternalExpectation::deviation(std::uint64_t value) const {
  std::optional<std::uint64_t> least;
  for (const std::uint64_t p : predicted) {
    if (!least || distance(value, p) < *least) least = distance(value, p);
  }
  return least;
}

std::size_t InternalSeries::series_of(const InternalRead& read) {
  // RDMSR and RDPMC read what ECX says (Intel SDM vol. 2).
  const bool chosen = read.op == InternalRead::Op::rdmsr || read.op == InternalRead::Op::rdpmc;
  const std::uint64_t counter =
      static_cast<std::uint64_t>(read.op) << 32 | (chosen ? read.ecx : 0u);
  const auto [known, added] = numbers_.try_emplace(counter, series_.size());
  if (added) series_.emplace_back();
  return known->second;
}

InternalSeries::InternalSeries(const InternalReads& reads) {
  for (const InternalRead& read : reads) {
    const std::size_t s = series_of(read);
    series_[s].members.push_back(entries_.size());
    entries_.push_back({s, series_[s].members.size() - 1, read.position_known,
                        read.position.instruction, read.value()});
  }
  for (Series& s : series_) {
    std::size_t backwards = 0;
    for (std::size_t i = 1; i < s.members.size(); ++i) {
      if (entries_[s.members[i]].value < entries_[s.members[i - 1]].value) ++backwards;
    }
    const bool changes =
        !s.members.empty() && entries_[s.members.back()].value != entries_[s.members.front()].value;
    s.counts_up = s.members.size() >= kFewest && changes && backwards <= 1 + s.members.size() / 50;
  }
}

/// Counts per instruction around this place, without the one there: the median, because a halt or a
/// repeated instruction in between makes it more.
double InternalSeries::rate(const Series& series, std::size_t place) const {
  std::vector<double> rates;
  const std::size_t begin = place - std::min(place, kRateOver);
  const std::size_t end = std::min(series.members.size(), place + kRateOver + 1);
  for (std::size_t i = begin + 1; i < end; ++i) {
    const Entry& a = entries_[series.members[i - 1]];
    const Entry& b = entries_[series.members[i]];
    if (i == place || i == place + 1 || b.instruction <= a.instruction || b.value < a.value)
      continue;
    rates.push_back(static_cast<double>(b.value - a.value) /
                    static_cast<double>(b.instruction - a.instruction));
  }
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

InternalExpectation InternalSeries::expectation(std::size_t number) const {
  InternalExpectation expected;
  const Entry& e = entries_.at(number);
  const Series& series = series_[e.series];
  if (!series.counts_up) return expected;
  const double rate = e.counted ? this->rate(series, e.place) : 0;
  const auto moved = [&](const Entry& from) {
    const double by = rate * static_cast<double>(distance(e.instruction, from.instruction));
    return static_cast<std::uint64_t>(std::llround(by));
  };
  if (e.place > 0) {
    const Entry& before = entries_[series.members[e.place - 1]];
    expected.low = before.value;
    if (rate > 0 && before.counted) expected.predicted.push_back(before.value + moved(before));
  }
  if (e.place + 1 < series.members.size()) {
    const Entry& after = entries_[series.members[e.place + 1]];
    expected.high = after.value;
    if (rate > 0 && after.counted) expected.predicted.push_back(after.value - moved(after));
  }
  return expected;
}

std::vector<std::size_t> InternalSeries::doubtful(std::size_t end) const {
  std::vector<std::pair<std::uint64_t, std::size_t>> found;
  for (std::size_t n = 0; n < std::min(end, entries_.size()); ++n) {
    const InternalExpectation expected = expectation(n);
    const std::uint64_t value = entries_[n].value;
    const auto deviation = expected.deviation(value);
    if (!expected.allows(value)) {
      found.emplace_back(~std::uint64_t{0}, n);
      continue;
    }
    if (!deviation) continue;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const auto other = expected.deviation(value ^ std::uint64_t{1} << bit);
      if (*other <= *deviation / kMuchNearer && *other < *deviation) {
        found.emplace_back(*deviation, n);
        break;
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> numbers;
  for (const auto& [by, n] : found) numbers.push_back(n);
  return numbers;
}

}  // namespace citcat
