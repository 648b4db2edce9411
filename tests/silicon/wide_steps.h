#pragma once
// The replay's machine and a real processor side by side in 64-bit mode, one instruction on each
// from the same registers and memory, then everything compared: as host_steps.h does it for code of
// 32 and 16 bits. What the manuals leave undefined is told by another decoder (Zydis).

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/machine/machine.h"
#include "silicon/host_steps.h"
#include "silicon/wide_guest.h"

namespace citcat::silicon {

class WideLockStep {
 public:
  /// One memory a seed.
  WideLockStep(ExecutionPath path, std::uint64_t seed);
  ~WideLockStep();

  WideGuest& guest() { return guest_; }
  /// Changes what the replay leaves of each step from now on, to see that it is found.
  void alter_replay(std::function<void(CpuState&)> change) { alter_ = std::move(change); }
  void run(WideMode mode, std::uint64_t steps, StepCounts& counts);
  /// The state that WideGuest::next() gave last.
  void step(const CpuState& state, const std::string& name, StepCounts& counts);

 private:
  struct Facts;

  void begin(const CpuState& state);
  bool repair_memory();
  StepEnd step_replay(unsigned instructions);
  void take_frame(StepEnd& end) const;
  StepEnd step_host(const CpuState& before, const Facts& facts);
  void clear_own_flags(const Facts& facts, const StepEnd& host);
  std::vector<std::string> differences(const Facts& facts, const StepEnd& replay,
                                       const StepEnd& host);
  static const char* rule_of(const Facts& facts, const std::vector<std::string>& found,
                             const StepEnd& host);
  static std::string text(const CpuState& before, const Facts& facts, const StepEnd& replay,
                          const StepEnd& host);

  WideGuest guest_;
  HostProcessor host_;
  StepWorld world_;
  std::unique_ptr<Machine> machine_;
  MemoryImage image_;
  std::vector<std::uint8_t> base_;  ///< what image_ holds
  std::optional<Machine::Snapshot> loaded_;
  std::uint64_t seed_;
  bool unnoticed_ = false;  ///< the step before changed memory of the replay and did not tell
  std::string last_;        ///< that step
  std::function<void(CpuState&)> alter_;
};

}  // namespace citcat::silicon
