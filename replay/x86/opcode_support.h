#pragma once
// Which opcodes each processor has, beyond what Zydis (which knows the newest) refuses.

#include <cstdint>
#include <span>

#include "events/cpu_traits.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat {

/// The 8088 and 80286: no 32-bit operands, no FS and GS, LOCK on anything.
constexpr bool is_16_bit_processor(CpuModel model) { return cpu_traits(model).sixteen_bit; }

/// Whether `model` executes the instruction whose encoding (opcode, map, ModRM, mandatory prefix)
/// is in `info`; if not it raises #UD.
bool is_on_processor(const DecodedInstruction& info, CpuModel model);

/// Forms that take LOCK from the 386 on (SDM vol. 2, LOCK): read-modify-write of memory by these.
bool is_lockable(const DecodedInstruction& info);

/// Of BT, BTS, BTR or BTC of a register behind LOCK, as `bytes` begin with for a 386: how many
/// bytes its prefixes are. 0 where `bytes` begin with anything else.
std::size_t prefixes_of_locked_bit_test(std::span<const std::uint8_t> bytes);

}  // namespace citcat
