#include "replay/machine/block_code.h"

namespace citcat {

BlockCode BlockCode::first(std::uint32_t count) const {
  BlockCode code(linear_, code_base_, frame_);
  code.second_frame_ = second_frame_;
  code.comes_again_ = false;
  for (std::uint32_t i = 0; i < count; ++i) code.add(instructions_[i].info);
  return code;
}

}  // namespace citcat
