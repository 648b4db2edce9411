#pragma once
// Executes SSE instructions on the processor we run on, moving only their operands in and out.
//
// HostFpu puts the whole state into the host's unit for each instruction. Two registers suffice for
// instructions that neither touch x87 or MMX registers nor have results in which processors differ.

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "x86/decode/decoded_instruction.h"
#include "x86/host_code.h"

namespace citcat {

/// Operands and results.
struct VectorOperands {
  std::array<std::uint8_t, 16> first, second;
  std::uint64_t gpr;
  std::uint64_t flags;
  std::uint32_t mxcsr, raised, own;
};

/// How an instruction is carried out, whatever its registers. Each operand that it has is one of
/// the two registers, or the general register, or memory.
struct VectorForm {
  enum class Part : std::uint8_t { none, vector, gpr };
  Part reg = Part::none, rm = Part::none;  ///< of ModRM; `rm`: none where it is in memory
  bool reg_is_second = false;              ///< `first` is changed
  bool writes_vector = false, writes_gpr = false, writes_memory = false, writes_flags = false;
  bool floating = false;        ///< by MXCSR, whose flags it sets
  std::uint8_t misaligned = 0;  ///< bits of an address of memory that must be 0
  void (*code)(void* memory, VectorOperands* operands) = nullptr;
};

class HostVectors {
 public:
  /// Null: HostFpu, or the engine, has to make it. Valid as long as the object.
  const VectorForm* prepare(const DecodedInstruction& info);

 private:
  HostCode code_;
  std::unordered_map<std::uint64_t, std::unique_ptr<VectorForm>> forms_;  ///< by their bytes
};

/// Runs it. False where it raises an exception that `mxcsr` does not mask: then nothing counts.
/// Else `mxcsr` has its flags.
bool run_vector(const VectorForm& form, void* memory, VectorOperands& operands,
                std::uint32_t& mxcsr);

}  // namespace citcat
