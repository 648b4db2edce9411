#include "replay/machine/executed_block.h"

namespace citcat {

ExecutedInstruction ExecutedBlock::instruction(std::uint32_t i) const {
  ExecutedInstruction e;
  e.info = &decoded(i);
  e.linear = linear(i);
  e.eip = eip(i);
  e.physical = physical(i);
  e.ea_count = e.info->ea_count;
  const std::uint32_t* const address = addresses_ + code_->instruction(i).addresses_before;
  for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] = LinearAddr{address[a]};
  return e;
}

void Observer::block(const ExecutedBlock& block, Position first) {
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    instruction(block.instruction(i), {first.instruction + i, 0});
  }
}

}  // namespace citcat
