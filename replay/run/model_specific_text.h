#pragma once
// Names the first result that depends on the model of the processor.

#include <string>

namespace citcat {

class Machine;

/// The instruction of this machine's run that gave the first result which differs from one
/// processor model to the next, as text: position, address, disassembly. Empty where there is none.
std::string first_model_specific_text(const Machine& machine);

}  // namespace citcat
