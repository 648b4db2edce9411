#pragma once
// From which bytes an instruction makes each of its results: for every byte of a register, every
// flag and every byte of memory that it writes, what its value depends on. Partial registers,
// implied operands and the register stack of the x87 are distinguished.

#include <cstdint>
#include <vector>

#include "x86/decode/decoded_instruction.h"
#include "x86/flow/value_places.h"

namespace citcat {

/// Bytes that an instruction reads or writes, one after the other.
struct ValueSpan {
  enum class Of : std::uint8_t {
    places,  ///< of registers, and flags
    loads,   ///< what it reads from memory, all accesses in their order one after the other
    stores,  ///< what it stores, likewise
    input,   ///< what comes from a port, a clock, or otherwise from outside without memory
  };
  Of of = Of::places;
  std::uint16_t first = 0;
  std::uint16_t count = 0;
  static constexpr std::uint16_t kAll = 0xffff;  ///< as many as there are
  bool operator==(const ValueSpan&) const = default;
};

/// What is written together. Byte i depends on byte i of each of `lanes`, where there is one, and
/// on all of `whole`.
struct ValueEffect {
  std::vector<ValueSpan> to, lanes, whole;
  /// It happens always; or only where `told_by` is among what was loaded, or is not.
  enum class When : std::uint8_t { always, loaded, not_loaded } when = When::always;
  ValueSpan told_by = {};
  /// Bits of each byte of `to` that it writes; the others are written by other effects, or kept.
  std::uint8_t to_bits = 0xff;
  /// Bits of the sources that count; 0: all of `whole`, and in a lane those that matter in `to`.
  std::uint8_t from_bits = 0;
};

struct ValueFlow {
  std::vector<ValueEffect> effects;   ///< of the state before, all at once
  std::vector<PlaceRange> addresses;  ///< registers that its addresses are made of
  std::vector<PlaceRange> decides;    ///< where it is a branch: what it goes by
  bool branch = false;                ///< it may go on elsewhere, by what it reads
  /// By how much the register stack moves: what is ST(i) after it was ST(i - moves) before.
  std::int8_t stack_moves = 0;
  bool uses_stack = false;  ///< it takes the registers by their number from the top
  bool uses_mmx = false;    ///< it takes the same registers by fixed numbers, and sets the top to 0
  /// All that it writes in registers.
  PlaceSet written;
  /// Flags that it writes whose value no manual defines: bits of EFLAGS.
  std::uint32_t undefined_flags = 0;
  bool stores = false;
  bool approximate = false;  ///< what it does is not known in detail: everything may count
};

/// The flow of an instruction that decode_instruction() accepted. Of a repeated string: of one
/// iteration. Facts: Intel SDM vol. 2; Zydis' tables of operands and flags.
ValueFlow value_flow(const DecodedInstruction& info);

/// The default size of the code segment that an instruction was decoded for: 16, 32 or 64.
int code_segment_bits(const DecodedInstruction& info);

}  // namespace citcat
