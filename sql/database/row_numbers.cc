#include "sql/database/row_numbers.h"

#include "formats/io/memory_limit.h"

namespace citcat::sql {

namespace {

/// Bits of a number that is not negative: the processor, the position or index of the row, and its
/// number there. Only strings of more accesses, and rows with further keys, need more.
constexpr unsigned kPlaceBits = 40, kThereBits = 18, kProcessorBits = 5;
static_assert(kPlaceBits + kThereBits + kProcessorBits == 63);

constexpr bool fits(std::uint64_t n, unsigned bits) { return n >> bits == 0; }

/// A node of the map, with what its allocation takes.
constexpr std::uint64_t kNodeBytes = 112;

}  // namespace

std::int64_t RowNumbers::number(std::size_t processor, const RowKey& key) {
  const auto [place, there, third, fourth] = key;
  if (third == 0 && fourth == 0 && fits(place, kPlaceBits) && fits(there, kThereBits) &&
      fits(processor, kProcessorBits)) {
    return static_cast<std::int64_t>((processor << kPlaceBits | place) << kThereBits | there);
  }
  const auto next = -1 - static_cast<std::int64_t>(others_.size());
  const auto [at, is_new] = others_.try_emplace({processor, key}, next);
  if (is_new && others_.size() * kNodeBytes > memory_limit())
    refuse_memory("the query", "one of its rows");
  return at->second;
}

}  // namespace citcat::sql
