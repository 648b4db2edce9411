#include "replay/diagnose/value_guesses.h"

#include <algorithm>

namespace citcat {
namespace {

/// Distinct values cut to a width, in the order they were added.
class Values {
 public:
  Values(std::uint64_t value, unsigned bits)
      : value_(value), mask_(bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0}) {}
  void add(std::uint64_t value) {
    value &= mask_;
    if (value == (value_ & mask_)) return;
    if (std::find(values_.begin(), values_.end(), value) == values_.end()) values_.push_back(value);
  }
  std::vector<std::uint64_t> take() { return std::move(values_); }

 private:
  const std::uint64_t value_, mask_;
  std::vector<std::uint64_t> values_;
};

std::uint64_t reversed(std::uint64_t value, unsigned bytes) {
  std::uint64_t result = 0;
  for (unsigned i = 0; i < bytes; ++i) result |= (value >> (8 * i) & 0xff) << (8 * (bytes - 1 - i));
  return result;
}

/// The part of the value at bit `at`, `width` bits of it, is `part`.
std::uint64_t with_part(std::uint64_t value, unsigned at, unsigned width, std::uint64_t part) {
  const std::uint64_t mask = ((std::uint64_t{1} << width) - 1) << at;
  return (value & ~mask) | (part << at & mask);
}

}  // namespace

std::vector<std::uint64_t> solved_values(std::uint64_t value, unsigned bits,
                                         const std::vector<ShownDifference>& differences) {
  Values values(value, bits);
  for (const auto& [ours, shown] : differences) {
    values.add(value + shown - ours);
    values.add(value ^ shown ^ ours);
    values.add(shown);
  }
  for (const auto& [ours, shown] : differences) {
    for (unsigned at = 0; at < bits; at += 8) {
      for (const unsigned width : {8u, 16u}) {
        if (at + width <= bits) values.add(with_part(value, at, width, shown));
      }
    }
    values.add(value - shown + ours);
    // A byte register, a scaled index, a segment.
    for (const unsigned shift : {8u, 16u, 24u, 1u, 2u, 3u, 4u}) {
      values.add(value + ((shown - ours) << shift));
      values.add(value ^ (shown ^ ours) << shift);
      const auto less = static_cast<std::int64_t>(shown - ours) >> shift;
      values.add(value + static_cast<std::uint64_t>(less));
      values.add(value ^ (shown ^ ours) >> shift);
    }
  }
  return values.take();
}

std::vector<std::uint64_t> mistyped_values(std::uint64_t value, unsigned bits) {
  Values values(value, bits);
  values.add(with_part(value, 0, 16, reversed(value, 2)));
  if (bits >= 32) {
    values.add(reversed(value, 4));
    values.add(with_part(value, 16, 16, reversed(value >> 16, 2)));
    values.add(value << 16 | value >> 16);
  }
  for (const std::uint64_t off : {1u, 2u, 4u}) {
    values.add(value + off);
    values.add(value - off);
  }
  values.add(value >> 4);
  // The digit that is lost may have been any.
  for (std::uint64_t digit = 0; digit < 16; ++digit) {
    values.add(value << 4 | digit);
    values.add((value & ((std::uint64_t{1} << bits) - 1)) >> 4 | digit << (bits - 4));
  }
  values.add(0);
  values.add(~value + 1);
  values.add(~value);
  return values.take();
}

}  // namespace citcat
