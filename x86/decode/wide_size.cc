#include "x86/decode/wide_size.h"

namespace citcat {

WideSize wide_size(const OpcodeRow& row) {
  using Kind = InstructionClass;
  using enum AccessPattern;
  const Kind kind = row.kind;
  if (kind == Kind::in || kind == Kind::out || kind == Kind::ins || kind == Kind::outs) {
    return WideSize::port;
  }
  switch (row.accesses) {
    case push:
    case push_operand:
    case push_segment:
    case pop:
    case pop_operand:
    case pop_segment:
    case enter:
    case leave:
    case interrupt:
      return WideSize::stack;
    case branch:
    case call:
    case ret:
    case jump_indirect:
    case call_indirect:
      return WideSize::near_branch;
    default:
      return WideSize::encoded;
  }
}

}  // namespace citcat
