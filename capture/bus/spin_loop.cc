#include "capture/bus/spin_loop.h"

namespace citcat {

std::size_t repeating_tail(const std::deque<BusTransaction>& traffic) {
  constexpr std::size_t kLongestPeriod = 64, kLeastRounds = 8;
  const auto same = [](const BusTransaction& a, const BusTransaction& b) {
    return a.op == b.op && a.address == b.address && a.size == b.size && a.data == b.data;
  };
  const std::size_t n = traffic.size();
  for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
    std::size_t length = period;
    while (length < n && same(traffic[n - 1 - length], traffic[n - 1 - length + period])) ++length;
    if (length >= kLeastRounds * period && length >= kLongestPeriod) return length;
  }
  return 0;
}

}  // namespace citcat
