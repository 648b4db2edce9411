#pragma once
// Raises #UD for instructions that the processor lacks according to its CPUID, and ends the replay
// at those that it has but citcat does not execute. It also ends the replay at an encoding that
// another processor executes as something else, if nothing says which of them was recorded.

#include <cstdint>
#include <optional>
#include <string>

#include "events/machine/control_bits.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/units/model_registers.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/instruction_features.h"

namespace citcat {

/// Uses the answers of CPUID in the state, and those that the replay has reached. Without an
/// answer, an instruction with a single meaning is executed: a processor without it raises an
/// exception, which the bus shows. BSF and BSR after F3 have two meanings: they are executed if
/// both give the same, and refused otherwise, like instructions that citcat does not execute.
/// Without an answer, processors before long mode have the features of the P6; those before the P6
/// have no F3 scans.
class FeatureGate {
 public:
  /// All must outlive the object.
  FeatureGate(CpuContext& cpu, const ModelRegisters& model_registers)
      : cpu_(cpu), model_registers_(model_registers) {}

  /// Tells the decoder what CPUID makes of BSF and BSR after F3, and the MMU what of entries.
  void take() const {
    if (cpu_.traits.has_long_mode) take_limits();
    const std::optional<bool> tzcnt = model_registers_.tells(kFeatureBmi1);
    const std::optional<bool> lzcnt = model_registers_.tells(kFeatureLzcnt);
    cpu_.has_tzcnt = tzcnt.value_or(false);
    cpu_.has_lzcnt = lzcnt.value_or(false);
    cpu_.scans_untold = may_count_zeros() && !(tzcnt && lzcnt);
  }
  /// Before an instruction is looked at, defined or not. Throws #UD, or ReplayStopped.
  void check(const DecodedInstruction& info) const {
    check_feature(info);
    if (!cpu_.traits.has_long_mode) return;
    check_vendor(info);
    if ((cpu_.engine.cr(4) & kCr4Umip) != 0 && cpu_.cpl() != 0) check_umip(info);
    if (info.bits64 && info.prefix_bytes != 0) check_segments(info);
  }
  /// The engine has refused it as undefined. Throws ReplayStopped where the processor has it.
  void check_refused(const DecodedInstruction& info) const;

 private:
  void take_limits() const;
  void check_feature(const DecodedInstruction& info) const;
  /// A processor of this kind may have TZCNT and LZCNT: an emulator's P6 does.
  bool may_count_zeros() const { return cpu_.traits.instructions >= InstructionSet::p6; }
  /// BSF after F3: BSF and TZCNT leave the same for this operand, as far as the code after looks.
  bool scans_alike(const DecodedInstruction& info) const;
  /// The source of a bit scan; nullopt where memory is not known to hold it.
  std::optional<std::uint64_t> scanned(const DecodedInstruction& info) const;
  void check_vendor(const DecodedInstruction& info) const;
  void check_umip(const DecodedInstruction& info) const;
  void check_segments(const DecodedInstruction& info) const;
  [[noreturn]] void refuse(const std::string& what) const;
  bool has_guests() const;
  [[noreturn]] void refuse_untold(const InstructionFeature& feature, const char* otherwise) const;

  CpuContext& cpu_;
  const ModelRegisters& model_registers_;
};

}  // namespace citcat
