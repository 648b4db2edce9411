#pragma once
// What a processor with long mode has not got is #UD, and what it has and nobody here executes ends
// the replay by its name.

#include <string>

#include "replay/machine/cpu_context.h"
#include "replay/machine/units/model_registers.h"
#include "replay/x86/decoded_instruction.h"
#include "replay/x86/instruction_features.h"

namespace citcat {

/// Goes by the answers of CPUID in the state dump. A dump without them stands for a processor that
/// has everything that is executed here, and nothing else.
class FeatureGate {
 public:
  /// All must outlive the object.
  FeatureGate(CpuContext& cpu, const ModelRegisters& model_registers)
      : cpu_(cpu), model_registers_(model_registers) {}

  /// Tells the decoder what CPUID makes of BSF and BSR behind F3, and the MMU what of entries.
  /// Without its answers they are what they were.
  void take() const {
    take_limits();
    const bool tells = model_registers_.cpuid_leaf(0) != nullptr;
    cpu_.has_tzcnt = tells && model_registers_.has(kFeatureBmi1);
    cpu_.has_lzcnt = tells && model_registers_.has(kFeatureLzcnt);
  }
  /// Before an instruction is looked at, defined or not. Throws #UD, or ReplayStopped.
  void check(const DecodedInstruction& info) const {
    check_feature(info);
    check_vendor(info);
    if ((cpu_.engine.cr(4) & kCr4Umip) != 0 && cpu_.cpl() != 0) check_umip(info);
    if (info.bits64 && info.prefix_bytes != 0) check_segments(info);
  }

 private:
  static constexpr std::uint32_t kCr4Umip = 1u << 11;

  void take_limits() const;
  void check_feature(const DecodedInstruction& info) const;
  void check_vendor(const DecodedInstruction& info) const;
  void check_umip(const DecodedInstruction& info) const;
  void check_segments(const DecodedInstruction& info) const;
  [[noreturn]] void refuse(const std::string& what) const;

  CpuContext& cpu_;
  const ModelRegisters& model_registers_;
};

}  // namespace citcat
