#pragma once
// Code that runs one instruction of the guest on the processor we run on.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// ModRM of [rdi], and of the first registers.
inline constexpr std::uint8_t kModRmRdi = 0x07;

/// The general register of an MMX or SSE form, if it has one: in ModRM.reg or ModRM.rm.
enum class GprPlace : std::uint8_t { none, reg_written, rm_read, rm_written };
GprPlace gpr_place(const DecodedInstruction& info);

/// Instruction of one of the maps behind 0F with its memory operand at [rdi] and its general
/// register in rax.
std::vector<std::uint8_t> vector_code(const DecodedInstruction& info, GprPlace place);

/// True where the host has this instruction of the maps 0F 38 and 0F 3A; not every host has all.
bool host_has(const DecodedInstruction& info);

/// Executable memory that is never writable at the same time. Grows by blocks, freed as a whole.
class HostCode {
 public:
  HostCode() = default;
  ~HostCode();
  HostCode(const HostCode&) = delete;
  HostCode& operator=(const HostCode&) = delete;

  /// The parts, one behind the other. Throws IoError when the system refuses executable memory.
  const void* add(std::initializer_list<std::span<const std::uint8_t>> parts);

 private:
  void grow();
  void protect(int protection);

  std::vector<std::uint8_t*> blocks_;
  std::size_t used_ = 0;
};

}  // namespace citcat
