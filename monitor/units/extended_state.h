#pragma once
// XSAVE, XSAVEOPT, XRSTOR, XGETBV and XSETBV (Intel SDM vol. 1, chapter 13). The emulator treats
// every component as in use, stores all requested ones, and sets their bits in XSTATE_BV. The
// monitor restores what a processor leaves unchanged.

#include <array>
#include <cstdint>
#include <span>

#include "monitor/processor/observation.h"
#include "monitor/units/x87_unit.h"

namespace citcat::monitor {

class ExtendedState {
 public:
  ExtendedState(Observation& seen, X87Unit& x87)
      : seen_(seen), cpu_(seen.cpu), recording_(seen.recording), linear_(seen.linear), x87_(x87) {}

  /// Ends the recording if it would begin with another XCR0 than readers of the driver's dump take.
  void check_dump(std::span<const std::uint32_t> words);
  void prepare(const Insn& insn);
  /// It was executed, not refused.
  void finish(const Insn& insn);

 private:
  void save(const Insn& insn);
  void read(const Insn& insn);
  std::uint64_t components() const { return operand_ & cpu_.facts.xcr0; }

  Observation& seen_;
  ObservedProcessor& cpu_;
  Recording& recording_;
  LinearMemory& linear_;
  X87Unit& x87_;
  std::uint64_t operand_ = 0;                    ///< EDX:EAX
  std::uint32_t number_ = 0;                     ///< ECX
  std::uint64_t there_ = 0;                      ///< components that XRSTOR takes from memory
  std::array<std::uint8_t, kAreaBytes> area_{};  ///< before it is stored to
  bool in_ram_ = false;                          ///< all of it
};

}  // namespace citcat::monitor
