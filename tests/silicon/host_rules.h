#pragma once
// What of a step is compared, what the manuals leave undefined, and the named rules for what
// processors do differently. Nothing here uses code of the replay but its plain state.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "silicon/host_steps.h"

namespace citcat::silicon {

struct StepComparison {
  const CpuState& before;
  const StepInstruction& instruction;
  const StepEnd& replay;
  const StepEnd& host;
  std::vector<std::uint32_t> memory;  ///< physical addresses of bytes that differ
  std::span<const std::uint8_t> host_ram;
  std::function<std::uint8_t(std::uint32_t)> replay_byte;
  bool floating_point = false;  ///< its state is compared too
};

struct StepVerdict {
  std::string key;                       ///< instruction and kinds of differences
  std::vector<std::string> differences;  ///< that no rule explains
  std::vector<std::string> rules;
  std::string state;  ///< what was before
  std::string text() const;
};

StepVerdict judge(const StepComparison& comparison);

/// "retired", "vector 13".
std::string end_name(const StepEnd& end);

}  // namespace citcat::silicon
