#pragma once
// What random programs are made from: numbers that the same seed gives again.

#include <cstdint>
#include <random>

namespace citcat {

class RandomDraws {
 public:
  explicit RandomDraws(std::mt19937_64& random) : random_(random) {}

 protected:
  /// Below `n`.
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }
  bool chance(std::uint32_t one_in) { return pick(one_in) == 0; }
  std::uint32_t any() { return static_cast<std::uint32_t>(random_()); }

 private:
  std::mt19937_64& random_;
};

}  // namespace citcat
