#pragma once
// Special cycles - halt, shutdown, flush - in the order of the bus.

#include <deque>
#include <optional>

#include "replay/verify/comparison_result.h"
#include "replay/verify/mismatch.h"

namespace citcat {

class SpecialMatcher {
 public:
  void expect(const BusTransaction& t) { waiting_.push_back(t); }
  bool empty() const { return waiting_.empty(); }
  /// The next that is due; null where there is none.
  const BusTransaction* first() const { return waiting_.empty() ? nullptr : &waiting_.front(); }
  /// The replay makes a cycle; counted, and the one that is due taken.
  std::optional<Mismatch> observe(BusOp op, ComparisonResult& result);
  /// At the end of the replay.
  std::optional<Mismatch> left_before(Position end) const;

 private:
  std::deque<BusTransaction> waiting_;
};

}  // namespace citcat
