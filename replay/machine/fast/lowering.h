#pragma once
// Turns a decoded instruction into the operation that executes it.

#include <cstdint>
#include <optional>

#include "events/machine/address.h"
#include "events/machine/cpu_traits.h"
#include "replay/machine/fast/handler_table.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/host_vectors.h"

namespace citcat::fast {

/// The parts of the processor's mode that are built into operations.
struct CodeShape {
  bool bits32 = false;   ///< of code
  bool bits64 = false;   ///< 64-bit mode
  bool stack32 = false;  ///< SS.B
  bool real_or_v86 = true;
  bool v86 = false;
  /// F3 makes another instruction of BSF or BSR. With long mode that is looked at elsewhere.
  bool counts_zeros = false;
  /// Bit s: SegmentRegister s has base 0 and no limit for reads and writes. In 64-bit mode never FS
  /// and GS.
  std::uint8_t flat = 0;
  std::uint32_t code_base = 0;
  std::uint64_t code_limit = 0;
  CodeMode mode() const { return {bits32, real_or_v86, bits64}; }
  /// Where an offset in CS lies.
  LinearAddr linear(std::uint64_t eip) const {
    return bits64 ? LinearAddr{eip} : linear32(code_base, static_cast<std::uint32_t>(eip));
  }
  bool operator==(const CodeShape&) const = default;
};

/// How one instruction is executed.
struct Lowered {
  enum class Kind : std::uint8_t {
    plain,    ///< `op` makes it, and goes on after it
    branch,   ///< `op` makes it, and the block ends
    string,   ///< a string instruction: made by the tier
    careful,  ///< to be made elsewhere
  } kind = Kind::careful;
  /// Op::slot: the number of the first address that it puts down itself.
  Op op;
  bool pushes_memory = false;  ///< Op::immediate is to be how far apart its two addresses lie
  /// Effective addresses known beforehand: bit i of `known`, number i is `address[i]`.
  std::uint8_t known = 0;
  LinearAddr address[2];
};

/// `eip`: its offset in CS, or its address. Effective addresses are those of
/// DecodedInstruction::ea, in their order; the operation puts those that are not known into the
/// area from Op::slot on.
Lowered lower(const DecodedInstruction& info, std::uint64_t eip, const CodeShape& shape,
              const CpuTraits& traits, const HandlerTable& table, HostVectors& vectors);

}  // namespace citcat::fast
