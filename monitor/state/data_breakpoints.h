#pragma once
// The breakpoints that a processor reports in DR6. The emulator differs: it names only one of
// several data breakpoints that an access meets, and code breakpoints at the next instruction.

#include <array>
#include <cstdint>

#include "monitor/log/logged_state.h"

namespace citcat::monitor {

class DataBreakpoints {
 public:
  /// Takes DR0 to DR3, DR6 and DR7. `clears`: whether #DB clears bits of earlier ones, as it does
  /// in processors with long mode.
  void load(const LoggedState& state, bool clears);
  /// Whether accesses have to be reported.
  bool watch_data() const { return watch_data_; }
  /// An instruction has made an access of `size` bytes.
  void note(std::uint64_t linear, unsigned size, bool store);
  /// #DB has been raised, with this in the emulator's DR6; `stepping`: with TF set. BS may be left
  /// of an earlier one.
  void raised(std::uint64_t dr6, bool stepping);
  /// Another exception or interrupt has been delivered: what the instruction has met by then it
  /// meets again.
  void abandon() { met_ = 0; }
  /// In a repeated run, RF, which keeps code breakpoints from an instruction, is set in front of
  /// this one (by its number) for the emulator alone.
  void leave_resume_out(std::uint64_t instruction) { no_resume_at_ = instruction; }
  bool leaves_resume_out(std::uint64_t instruction) const { return no_resume_at_ == instruction; }
  /// B0 to B3 as a processor has them (Intel SDM vol. 3, 17.2.3; replay/machine/units/debug_unit.cc
  /// tells who clears them).
  unsigned bits() const { return bits_; }

 private:
  std::array<std::uint64_t, 4> at_{};
  std::uint64_t control_ = 0;  ///< DR7
  bool watch_data_ = false, clears_ = false;
  unsigned met_ = 0;  ///< since the last #DB
  unsigned bits_ = 0;
  std::uint64_t no_resume_at_ = ~std::uint64_t{0};
};

}  // namespace citcat::monitor
