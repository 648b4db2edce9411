#pragma once
// The explicit operands of an instruction, read from its bytes by the forms of its row. The decoder
// makes accesses from them; registers, and operands that access nothing (LEA), are found here.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// What the bytes after the opcode say.
struct EncodedOperands {
  std::uint8_t word = 4;   ///< 2, 4 or 8: the operand size of forms of v
  bool in_memory = false;  ///< `address` is that of the operand of ModRM or moffs
  MemoryOperand address;   ///< its size and direction as the row says; not for M forms of no size
  std::array<std::uint32_t, 2> immediates{};  ///< zero-extended; branches extended by their sign
};

/// Reads ModRM.rm, SIB, displacement and immediates of `info`, whose row, opcode, prefixes and
/// ModRM are filled in, from `bytes`, which begin after the opcode. The number of bytes they take,
/// or nothing where `bytes` end before.
std::optional<std::size_t> read_operands(const DecodedInstruction& info,
                                         std::span<const std::uint8_t> bytes,
                                         EncodedOperands& operands);

/// The address that ModRM names in a decoded instruction, as one of DecodedInstruction::operands
/// has it. For LEA, which accesses nothing, and others of one opcode byte.
MemoryOperand named_address(const DecodedInstruction& info);

/// Bytes of a form in memory, 0 for a form that is not in memory; `word` is the operand size,
/// `bits64`: in 64-bit mode.
unsigned memory_size(OperandForm form, unsigned word, bool bits64 = false);
/// Bytes of a form that may be a general register, 0 for one that cannot.
unsigned register_size(OperandForm form, unsigned word);
/// The general register that operand `number` is, or kNoRegister.
int operand_register(const DecodedInstruction& info, unsigned number, unsigned word);

}  // namespace citcat
