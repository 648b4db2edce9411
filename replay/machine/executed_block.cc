#include "replay/machine/executed_block.h"

#include <algorithm>

namespace citcat {

LinearAddr ExecutedBlock::address(std::uint32_t i) const {
  if (!code_->bits64()) return LinearAddr{addresses_[i]};
  return LinearAddr{addresses_[2 * i] | std::uint64_t{addresses_[2 * i + 1]} << 32};
}

ExecutedInstruction ExecutedBlock::instruction(std::uint32_t i) const {
  ExecutedInstruction e;
  e.info = &decoded(i);
  e.linear = linear(i);
  e.eip = eip(i);
  e.physical = physical(i);
  e.ea_count = e.info->ea_count;
  const unsigned before_it = code_->instruction(i).addresses_before;
  for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] = address(before_it + a);
  const auto behind = [](std::uint32_t n, const DataReference& r) { return n < r.instruction; };
  const auto before = [](const DataReference& r, std::uint32_t n) { return r.instruction < n; };
  const auto first = std::lower_bound(references_.begin(), references_.end(), i, before);
  const auto last = std::upper_bound(first, references_.end(), i, behind);
  e.references = {first, last};
  return e;
}

void Observer::block(const ExecutedBlock& block, Position first) {
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    instruction(block.instruction(i), {first.instruction + i, 0});
  }
}

}  // namespace citcat
