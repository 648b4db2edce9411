#include "replay/verify/special_matcher.h"

namespace citcat {

std::optional<Mismatch> SpecialMatcher::observe(BusOp op, ComparisonResult& result) {
  ++result.totals.specials.checked;
  if (waiting_.empty() || waiting_.front().op != op) {
    Mismatch mismatch{"the replay makes a special cycle that the processor did not",
                      {},
                      std::string(bus_op_name(op))};
    if (!waiting_.empty()) mismatch.expected = waiting_.front();
    return mismatch;
  }
  ++result.totals.specials.equal;
  result.last_agreed = waiting_.front().index;
  waiting_.pop_front();
  return std::nullopt;
}

std::optional<Mismatch> SpecialMatcher::left_before(Position end) const {
  if (waiting_.empty() || !is_left_at(waiting_.front(), end)) return std::nullopt;
  return Mismatch{"the processor made a special cycle and the replay did not", waiting_.front(),
                  "the end of the replay"};
}

}  // namespace citcat
