#include "replay/machine/executed_block.h"

#include <algorithm>
#include <vector>

#include "replay/machine/iteration_address.h"

namespace citcat {

ExecutedInstruction ExecutedBlock::instruction(std::uint32_t i) const {
  ExecutedInstruction e;
  e.info = &decoded(i);
  e.linear = linear(i);
  e.offset = offset(i);
  e.physical = physical(i);
  e.ea_count = e.info->ea_count;
  const unsigned before_it = code_->instruction(i).addresses_before;
  for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] = addresses_[before_it + a];
  const auto behind = [](std::uint32_t n, const DataReference& r) { return n < r.instruction; };
  const auto before = [](const DataReference& r, std::uint32_t n) { return r.instruction < n; };
  const auto first = std::lower_bound(references_.begin(), references_.end(), i, before);
  const auto last = std::upper_bound(first, references_.end(), i, behind);
  e.references = {first, last};
  return e;
}

void Observer::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  ExecutedInstruction e = first;
  std::vector<DataReference> references(first.references.begin(), first.references.end());
  e.references = references;
  for (std::uint32_t i = 0; i < count; ++i, ++now.iteration) {
    instruction(e, now);
    for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] = address_after(e.ea[a], 1, step);
    for (DataReference& r : references) {
      r.linear = address_after(r.linear, 1, step);
      r.physical = r.physical.plus32(step);
    }
  }
}

void Observer::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      instruction(block.instruction(i), first);
      ++first.instruction;
    }
  }
}

}  // namespace citcat
