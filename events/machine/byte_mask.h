#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

/// One bit for each byte of a page frame. Like std::bitset, with ranges handled a word at a time.
class ByteMask {
 public:
  bool operator[](std::size_t byte) const { return (words_[byte / 64] >> byte % 64 & 1) != 0; }
  void set(std::size_t byte) { words_[byte / 64] |= std::uint64_t{1} << byte % 64; }
  void reset(std::size_t byte) { words_[byte / 64] &= ~(std::uint64_t{1} << byte % 64); }
  void set() { words_.fill(~std::uint64_t{0}); }

  /// The first byte from `from` on that is set; kPageSize where none is.
  std::size_t next(std::size_t from) const {
    for (; from < kPageSize; from = (from / 64 + 1) * 64) {
      const std::uint64_t rest = words_[from / 64] >> from % 64;
      if (rest != 0) return from + static_cast<std::size_t>(std::countr_zero(rest));
    }
    return kPageSize;
  }

  bool all() const {
    return std::ranges::all_of(words_, [](auto w) { return ~w == 0; });
  }
  bool none() const {
    return std::ranges::all_of(words_, [](auto w) { return w == 0; });
  }
  std::size_t count() const {
    std::size_t n = 0;
    for (const std::uint64_t w : words_) n += static_cast<std::size_t>(std::popcount(w));
    return n;
  }

  // Ranges must not go beyond the page.
  bool all(std::size_t first, std::size_t size) const {
    if (size - 1 < 64 - first % 64) {
      const std::uint64_t bits = in_word(first, size);
      return (words_[first / 64] & bits) == bits;
    }
    bool result = true;
    each_word(first, size, [&](std::size_t word, std::uint64_t bits) {
      result &= (words_[word] & bits) == bits;
    });
    return result;
  }
  /// True when one of them was not set.
  bool set(std::size_t first, std::size_t size) {
    if (size - 1 < 64 - first % 64) {
      const std::uint64_t bits = in_word(first, size);
      std::uint64_t& word = words_[first / 64];
      const bool changed = (word & bits) != bits;
      word |= bits;
      return changed;
    }
    bool changed = false;
    each_word(first, size, [&](std::size_t word, std::uint64_t bits) {
      changed |= (words_[word] & bits) != bits;
      words_[word] |= bits;
    });
    return changed;
  }
  /// Fetches the bits of the byte `first` and of those near it from memory ahead.
  void prefetch(std::size_t first) const { __builtin_prefetch(&words_[first / 64]); }
  /// The bits of up to 32 bytes, the first in bit 0.
  std::uint32_t bits(std::size_t first, std::size_t size) const {
    std::uint64_t found = words_[first / 64] >> first % 64;
    if (first % 64 + size > 64) found |= words_[first / 64 + 1] << (64 - first % 64);
    return static_cast<std::uint32_t>(found & ((std::uint64_t{1} << size) - 1));
  }

  bool operator==(const ByteMask&) const = default;

 private:
  /// Those of a range that ends with the first byte's word, or before; not empty.
  static std::uint64_t in_word(std::size_t first, std::size_t size) {
    return (~std::uint64_t{0} >> (64 - size)) << first % 64;
  }
  template <class F>
  static void each_word(std::size_t first, std::size_t size, F&& visit) {
    while (size != 0) {
      const std::size_t here = std::min(size, 64 - first % 64);
      visit(first / 64, in_word(first, here));
      first += here;
      size -= here;
    }
  }

  std::array<std::uint64_t, kPageSize / 64> words_{};
};

}  // namespace citcat
