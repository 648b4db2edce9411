#pragma once
// What a processor with long mode has not got is #UD, and what it has and nobody here executes ends
// the replay by its name.

#include <string>

#include "replay/machine/cpu_context.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat {

class ModelRegisters;

/// Goes by the answers of CPUID in the state dump. A dump without them stands for a processor that
/// has everything that is executed here, and nothing else.
class FeatureGate {
 public:
  /// All must outlive the object.
  FeatureGate(const CpuContext& cpu, const ModelRegisters& model_registers)
      : cpu_(cpu), model_registers_(model_registers) {}

  /// Before an instruction is looked at, defined or not. Throws #UD, or ReplayStopped.
  void check(const DecodedInstruction& info) const {
    check_feature(info);
    check_vendor(info);
    if (info.bits64 && info.prefix_bytes != 0) check_segments(info);
  }

 private:
  void check_feature(const DecodedInstruction& info) const;
  void check_vendor(const DecodedInstruction& info) const;
  void check_segments(const DecodedInstruction& info) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const CpuContext& cpu_;
  const ModelRegisters& model_registers_;
};

}  // namespace citcat
