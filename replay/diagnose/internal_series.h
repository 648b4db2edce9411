#pragma once
// Values that cross no bus, as series in time: what the values before and after one say about it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "events/recording.h"

namespace citcat {

/// What the neighbours of one value expect it to be.
struct InternalExpectation {
  /// The last one before it and the first one after it of the same counter.
  std::optional<std::uint64_t> low, high;
  /// What the counter's rate makes of `low` and of `high`, where instructions are counted.
  std::vector<std::uint64_t> predicted;

  /// False where a counter would have run backwards. Neighbours that contradict each other expect
  /// nothing.
  bool allows(std::uint64_t value) const;
  /// Distance from the nearest prediction; nothing where there is none.
  std::optional<std::uint64_t> deviation(std::uint64_t value) const;
};

class InternalSeries {
 public:
  /// Copies what it needs.
  explicit InternalSeries(const InternalReads& reads);

  /// What the series lets expect of the read with this number; empty where the series does not
  /// count upwards.
  InternalExpectation expectation(std::size_t number) const;

  /// Numbers below `end` of reads that their neighbours contradict: a counter that ran backwards,
  /// or that is far from its rate and with one bit changed is not. Worst first.
  std::vector<std::size_t> doubtful(std::size_t end) const;

 private:
  struct Entry {
    std::size_t series = 0;  ///< in series_
    std::size_t place = 0;   ///< in the series
    bool counted = false;
    std::uint64_t instruction = 0;
    std::uint64_t value = 0;
  };
  struct Series {
    std::vector<std::size_t> members;  ///< numbers of reads
    bool counts_up = false;
  };
  double rate(const Series& series, std::size_t place) const;
  std::size_t series_of(const InternalRead& read);

  std::vector<Entry> entries_;
  std::vector<Series> series_;
  /// In series_, by what is read: the operation, and the register it is chosen by.
  std::map<std::uint64_t, std::size_t> numbers_;
};

}  // namespace citcat
