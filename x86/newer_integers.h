#pragma once
// The results of the integer instructions of BMI1, BMI2, LZCNT, MOVBE and ADX (Intel SDM vol. 2,
// each instruction's page).

#include <cstdint>

#include "x86/decode/operation.h"

namespace citcat {

/// What goes in: operands 2 and 3 in assembler order, or 1 and 2 where operand 1 is read too (ADCX,
/// ADOX); of `bits` each, zero-extended. MULX multiplies the given value of EDX by operand 3.
struct NewerIntegerInput {
  std::uint64_t first = 0, second = 0;
  unsigned bits = 32;       ///< 16, 32 or 64
  std::uint32_t flags = 0;  ///< EFLAGS
};

struct NewerIntegerResult {
  std::uint64_t value = 0;  ///< of operand 1
  std::uint64_t low = 0;    ///< MULX: of operand 2
  std::uint32_t flags = 0;  ///< EFLAGS. Of those that are undefined AF and PF are 0, others as of
                            ///< the result
};

/// `operation` is one of class newer_integer; anything else is our mistake.
NewerIntegerResult newer_integer(Operation operation, const NewerIntegerInput& in);

}  // namespace citcat
