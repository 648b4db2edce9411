#include "tools/idtrace/block_table.h"

#include "formats/io/hash.h"

namespace citcat::tools {
namespace {

/// Instructions are distinguished by their bytes; how many there are is part of the bytes' number
/// only where each is decoded alike, and so is compared beside it.
std::uint64_t hash_of(const ExecutedRun& run) {
  return hash64(run.code) ^ (run.linear.value << 32 | run.instructions.size());
}

}  // namespace

bool IdtraceBlockTable::is(std::uint32_t number, const ExecutedRun& run) const {
  const ExecutedRun& known = runs_[number];
  return known.linear == run.linear && known.bits == run.bits && known.code == run.code &&
         known.instructions == run.instructions;
}

std::uint32_t IdtraceBlockTable::number(const ExecutedRun& run) {
  const std::uint64_t hash = hash_of(run);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto i = begin; i != end; ++i) {
    if (is(i->second, run)) return i->second;
  }
  const std::uint32_t number = size();
  positions_.push_back(blocks_.add(run.linear.u32(), run.instructions));
  code_.add(run.bits, run.code);
  runs_.push_back(run);
  by_hash_.emplace(hash, number);
  return number;
}

}  // namespace citcat::tools
