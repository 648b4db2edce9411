#pragma once
// The replay's machine and a real processor side by side: the same registers and memory, one
// instruction on each, then registers, flags, selectors, memory and the exception compared. Each
// step begins anew, so that one difference is one finding.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/machine/machine.h"
#include "silicon/host_guest.h"
#include "silicon/host_processor.h"
#include "silicon/step_replay.h"

namespace citcat::silicon {

/// One instruction's bytes taken apart as far as the comparison needs it; shares nothing with
/// x86/decode/decoded_instruction.h.
struct StepInstruction {
  std::array<std::uint8_t, 15> bytes{};
  unsigned available = 0;  ///< of them, up to a page that is not there
  bool lock = false, repeat = false, operand_prefix = false;
  bool two_byte = false;
  std::uint8_t opcode = 0;    ///< of the one- or two-byte map
  std::uint8_t modrm = 0;     ///< the byte behind
  bool wide = false;          ///< 32-bit operands
  std::uint32_t address = 0;  ///< offset of the operand that ModRM names, if there is a ModRM
  unsigned reg() const { return modrm >> 3 & 7; }
  unsigned rm() const { return modrm & 7; }
  bool register_form() const { return modrm >= 0xc0; }
};

struct StepCounts {
  std::uint64_t equal = 0;
  std::map<std::string, std::uint64_t> rules;           ///< differs by a named rule
  std::map<std::string, std::uint64_t> not_comparable;  ///< by reason
  struct Unexplained {
    std::uint64_t count = 0;
    std::string first;
  };
  std::map<std::string, Unexplained> unexplained;  ///< by instruction and kind of difference
  std::map<std::string, std::uint64_t> ends;       ///< of compared steps: "retired", "vector 14"
  std::uint64_t steps() const;
};

class LockStep {
 public:
  /// One memory and one descriptor table a seed.
  LockStep(ExecutionPath path, std::uint64_t seed);
  ~LockStep();

  HostGuest& guest() { return guest_; }
  /// Changes what the replay leaves of each step from now on, to see that it is found.
  void alter_replay(std::function<void(CpuState&)> change) { alter_ = std::move(change); }
  void run(StepMode mode, std::uint64_t steps, StepCounts& counts);
  /// The state that HostGuest::next() gave last, or one made of it.
  void step(const CpuState& state, bool floating_point, const std::string& name,
            StepCounts& counts);

 private:
  void begin(const CpuState& state);
  void repair_memory();
  StepInstruction take_apart(const CpuState& state) const;
  StepEnd step_replay(unsigned instructions);
  void take_frame(StepEnd& end) const;
  StepEnd step_host(const CpuState& before, const StepInstruction& instruction,
                    bool floating_point);
  void clear_own_flags(const StepInstruction& instruction, const StepEnd& host);
  std::vector<std::uint32_t> differing_bytes() const;

  HostGuest guest_;
  HostProcessor host_;
  StepWorld world_;
  std::unique_ptr<Machine> machine_;
  MemoryImage image_;
  std::vector<std::uint8_t> base_;  ///< what image_ holds
  std::optional<Machine::Snapshot> loaded_;
  std::uint64_t seed_;
  std::uint64_t unnoticed_ = 0;
  std::string last_name_;
  std::function<void(CpuState&)> alter_;
};

}  // namespace citcat::silicon
