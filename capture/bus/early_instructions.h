#pragma once
// Instructions of an 8086 and its relatives before they are executed: how many bytes one has, and
// which access it makes first.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "events/bus_transaction.h"
#include "events/machine/cpu_state.h"

namespace citcat {

/// Whether `byte` is a prefix of the processor.
bool is_early_prefix(std::uint8_t byte, CpuModel cpu);

/// Bytes of the instruction that `bytes` begins with; nullopt while they are too few to tell. Where
/// the processor has no such instruction, the bytes that show it. Undocumented opcodes of an 8086
/// have the length that the silicon gives them (60h-6Fh repeat 70h-7Fh, C0h/C1h/C8h/C9h repeat
/// C2h/C3h/CAh/CBh).
std::optional<std::size_t> early_instruction_length(std::span<const std::uint8_t> bytes,
                                                    CpuModel cpu);

/// The accesses of one iteration of a string instruction.
struct StringAccess {
  unsigned reads = 0;   ///< operands read
  unsigned writes = 0;  ///< operands written
};

/// nullopt for an opcode that is not a string instruction of the processor.
std::optional<StringAccess> string_access(std::uint8_t opcode, CpuModel cpu);

/// The first access of an opcode that leaves no choice: a bus that shows another one is wired or
/// mapped wrongly. nullopt for all other opcodes.
std::optional<BusOp> first_access(std::uint8_t opcode, CpuModel cpu);

}  // namespace citcat
