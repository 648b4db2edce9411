#pragma once
// The accesses of an instruction whose effective addresses are known: what is read and stored where
// follows from its code and from them.

#include <cstdint>
#include <vector>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// One access: `offset` bytes after an effective address.
struct AddressedAccess {
  std::int16_t offset = 0;
  std::uint16_t size = 0;
  std::uint8_t address = 0;  ///< number into DecodedInstruction::ea
  bool write = false;
};

/// True if all accesses of the instruction lie at its effective addresses. Not so of POP into
/// memory, of ENTER with nesting, and of what the decoder does not describe.
bool accesses_follow(const DecodedInstruction& info);

/// Appends them in the processor's order, as for_each_access() has it. Where an instruction may
/// leave memory alone, it is taken not to. Only if accesses_follow().
void append_accesses(const DecodedInstruction& info, std::vector<AddressedAccess>& to);

}  // namespace citcat
