#pragma once
// The part of value_flow() for the x87. Private to that function.

#include "x86/flow/value_flow.h"

namespace citcat {

/// Fills in what an instruction D8 to DF does.
void add_x87_flow(const DecodedInstruction& info, ValueFlow& flow);

}  // namespace citcat
