#include "x86/flow/value_flow.h"

#include "x86/flow/flow_maker.h"

namespace citcat {

ValueFlow value_flow(const DecodedInstruction& info) { return flow::FlowMaker(info).make(); }

int code_segment_bits(const DecodedInstruction& info) {
  if (info.bits64) return 64;
  return (info.address_bits == 32) != info.address_prefix ? 32 : 16;
}

}  // namespace citcat
