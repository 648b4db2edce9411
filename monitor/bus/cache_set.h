#pragma once
// A set of a set-associative cache with true least-recently-used replacement.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace citcat::monitor {

/// The ways of a set in the order in which they were used.
class WayOrder {
 public:
  static constexpr unsigned kWays = 4;

  void use(unsigned way) { order_ = kNext[order_][way]; }
  unsigned oldest() const { return kOrders[order_][kWays - 1]; }

 private:
  using Order = std::array<std::uint8_t, kWays>;
  static constexpr unsigned kCount = 24;  ///< number of orders: kWays factorial
  static constexpr auto kOrders = [] {
    std::array<Order, kCount> all{};
    Order order{0, 1, 2, 3};
    for (Order& one : all) {
      one = order;
      std::next_permutation(order.begin(), order.end());
    }
    return all;
  }();
  /// The number of the order that follows when a way is used.
  static constexpr auto kNext = [] {
    std::array<Order, kCount> all{};
    for (unsigned from = 0; from < kCount; ++from)
      for (std::uint8_t way = 0; way < kWays; ++way) {
        Order after = kOrders[from];
        std::rotate(after.begin(), std::find(after.begin(), after.end(), way),
                    std::find(after.begin(), after.end(), way) + 1);
        const auto* const found = std::find(kOrders.begin(), kOrders.end(), after);
        all[from][way] = static_cast<std::uint8_t>(found - kOrders.begin());
      }
    return all;
  }();
  std::uint8_t order_ = 0;
};

/// A set that lies in one line of the host's cache.
struct alignas(64) CacheSet {
  static constexpr unsigned kWays = WayOrder::kWays;
  static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};

  struct Way {
    bool dirty = false;
    bool shared = false;  ///< another processor may have it, too
  };
  std::array<std::uint64_t, kWays> line{kNoLine, kNoLine, kNoLine, kNoLine};  ///< line numbers
  std::array<Way, kWays> ways;
  WayOrder order;
  std::uint8_t latest = 0;  ///< the way that was used last

  void use(unsigned way) {
    order.use(way);
    latest = static_cast<std::uint8_t>(way);
  }

  /// The number of the way that holds the line, or kWays; no branches, which would mispredict.
  unsigned find(std::uint64_t number) const {
    unsigned found = 1u << kWays;
    for (unsigned way = 0; way < kWays; ++way)
      found |= static_cast<unsigned>(line[way] == number) << way;
    return static_cast<unsigned>(std::countr_zero(found));
  }
  /// The way for another line: an empty one, or else the one that was used longest ago.
  unsigned find_place() const {
    const unsigned empty = find(kNoLine);
    return empty < kWays ? empty : order.oldest();
  }
};

}  // namespace citcat::monitor
