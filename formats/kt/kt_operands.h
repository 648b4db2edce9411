#pragma once
// The facts about an instruction that the KT model uses: how its addresses are computed, and how it
// changes the registers that they are computed from.

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// What an instruction does to registers that later addresses depend on. This models only as much
/// of the processor as pays off in compression: it need not be correct, only the same for writer
/// and reader.
enum class KtEffect : std::uint8_t {
  none,
  push_register,
  push_other,
  pop_register,
  pop_other,
  push_all,
  pop_all,
  call,
  call_indirect,
  ret,
  leave,
  interrupt,
  iret,
  move_register,
  load,
  load_byte,
  load_word,
  store,
  load_address,
  load_constant,
  add_constant,
  and_constant,
  add_register,
  subtract_register,
  shift_left,
  shift_right,
  clear,
  exchange,
  lods,
  stos,
  movs,
  overwrite,
};

/// How control leaves an instruction.
enum class KtFlow : std::uint8_t { next, branch, indirect, ret, repeat };

/// The parts of an instruction the model looks at.
struct KtOperands {
  static constexpr std::uint8_t kNone = 16;
  KtEffect effect = KtEffect::none;
  KtFlow flow = KtFlow::next;
  std::uint8_t base = kNone, index = kNone, scale = 0;  ///< of the memory operand
  std::uint8_t reg = kNone, rm = kNone;                 ///< registers the effect names
  std::uint8_t width = 4;                               ///< bytes a string or stack operation moves
  bool has_memory = false;
  bool cut = false;  ///< of 64-bit code: what it leaves in a register has 32 bits
  std::int64_t displacement = 0;
  std::int64_t constant = 0;
  bool has_target = false;  ///< address 0 is a jump target given by the bytes
  std::uint64_t target = 0;
};
/// Looks at an instruction as 32-bit code, or as that of 64-bit mode. Never fails: bytes that are
/// cut or unknown have no effect.
KtOperands kt_operands(std::uint64_t ip, std::span<const std::uint8_t> code, bool bits64 = false);

/// How one address of an instruction is predicted: base + (index << scale) + displacement, from
/// registers as far as they are known.
struct KtAddressRule {
  /// Kinds have statistics of their own.
  enum Kind : std::uint8_t { target, stack, string, memory };
  static constexpr std::size_t kKinds = 4;
  Kind kind = memory;
  std::uint8_t base = KtOperands::kNone, index = KtOperands::kNone, scale = 0;
  std::uint64_t displacement = 0;  ///< modulo what addresses have
};
KtAddressRule kt_address_rule(const KtOperands& operands, std::size_t slot);

}  // namespace citcat
