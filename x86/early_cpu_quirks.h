#pragma once
// The behaviour of processors before the 386 where the engine follows the 386: pure functions that
// the machine calls around an instruction. The 80286 rules were measured on a Harris 80C286
// (SingleStepTests/80286; counts in docs/fidelity.md), the 8088 rules are from Intel's manuals.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// A fault that the engine does not raise, with what the processor has already changed by then.
struct SegmentEndFault {
  std::uint8_t vector = 13;
  std::array<std::uint16_t, 8> gpr{};  ///< all general registers at the fault
  bool port_was_read = false;          ///< INS: the port read happened, its value is lost
};

/// 80286, real mode: a word at offset FFFFh faults instead of wrapping or reaching beyond the
/// segment. `gpr` are the registers before the instruction, or before this iteration of a repeated
/// string (whose count must not be zero); `direction_down` is EFLAGS.DF.
///
/// Not predicted, because never measured: pushes to FFFFh (SP = 1) other than PUSHA's.
std::optional<SegmentEndFault> segment_end_fault(const DecodedInstruction& info,
                                                 const std::uint64_t* gpr, bool direction_down);

/// True when a two-word operand or a double pop continues at offset 0000 on a 16-bit processor,
/// where the engine goes on to 10000h: first word at FFFEh. Execute such an instruction by hand,
/// with the offsets that for_each_access() gives.
bool wraps_between_words(const DecodedInstruction& info, const std::uint64_t* gpr);

/// FLAGS as POPF and IRET leave them on `model`, from the value that was popped or pushed: the bits
/// above OF that real mode does not keep. 80286 in real mode: 15..12 read as zero; 8088: as ones.
std::uint32_t loaded_flags(CpuModel model, bool protected_mode, std::uint32_t flags);

/// Whether memory is left alone: shifts and rotates by zero read their operand and do not write it.
/// `cl` is the low byte of ECX.
bool shift_writes_nothing(const DecodedInstruction& info, CpuModel model, std::uint8_t cl);

/// EFLAGS pushed by the divide error of `info`. AAM 0 on the 80286 clears OF SF ZF AF CF first; the
/// flags after DIV and IDIV follow no rule that was found and are returned unchanged.
std::uint32_t divide_error_flags(const DecodedInstruction& info, CpuModel model,
                                 std::uint32_t eflags);

/// True when the divide error's frame holds the address after the instruction: the 8088 (8086
/// Family User's Manual, interrupt type 0). From the 286 on it is the instruction itself.
bool divide_error_points_past(CpuModel model);

/// The value PUSH SP stores: the decremented one up to the 8088, the original from the 286 on.
std::uint16_t pushed_stack_pointer(CpuModel model, std::uint16_t sp_before);

/// Bits of a shift count that count: all eight on the 8088, five from the 286 on.
std::uint8_t shift_count_mask(CpuModel model);

/// Port writes by which an 80286 hands an ESC instruction to a coprocessor that does not answer.
struct PortWrite {
  std::uint16_t port = 0;
  std::uint16_t value = 0;
};

/// Opcode word to F8h, then IP, CS and, with a memory operand, its offset and selector to FCh. The
/// word holds the opcode in its low byte, as in memory; only the number of cycles and their ports
/// were measured.
std::vector<PortWrite> coprocessor_cycles(const DecodedInstruction& info, std::uint16_t ip,
                                          std::uint16_t cs, std::uint16_t operand_offset,
                                          std::uint16_t operand_selector);

}  // namespace citcat
