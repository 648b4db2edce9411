#pragma once
// The CodeLines of a block that tools receive.

#include <cstdint>

#include "replay/verify/code_lines.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// `line_of` as for CodeLines::add(); of an address, the lines in `address_mask` count.
template <class LineOf>
CodeLines code_lines_of(const StaticBlock& block, LineOf&& line_of,
                        std::uint32_t address_mask = ~0u) {
  CodeLines lines;
  for (const StaticInstruction& i : block.instructions()) {
    const std::uint32_t here = i.bytes_in_first_page();
    lines.add(i.physical.masked32(address_mask), here, i.physical_rest.masked32(address_mask),
              i.info.length - here, line_of);
  }
  return lines;
}

}  // namespace citcat::tools
