#pragma once
// The effect of string instructions on memory, element by element, within one page of each operand.

#include <cstddef>
#include <cstdint>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// CMPS and SCAS.
inline bool compares_strings(const DecodedInstruction& info) {
  return info.is(Operation::cmps) || info.is(Operation::scas);
}

/// `bytes` of elements of `size` bytes, each the low ones of `value`.
void fill_elements(std::uint8_t* to, std::uint64_t value, std::size_t size, std::size_t bytes);

/// What `bytes` bytes at `from` are moved to lies among those that are still to be moved.
bool is_overtaken(const std::uint8_t* to, const std::uint8_t* from, std::size_t bytes);

/// As MOVS does, from the lowest element up: where it moves up by less than there is, what it has
/// just stored is what it reads next, whole or in part.
void move_elements(std::uint8_t* to, const std::uint8_t* from, std::size_t size, std::size_t bytes);

}  // namespace citcat
