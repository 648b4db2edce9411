#include "monitor/units/task_register.h"

namespace citcat::monitor {

/// LLDT reads that the last of them are zero where they have to be; the emulator does not (AMD64
/// APM vol. 2, 4.8.3).
void TaskRegister::note_read(InsnKind kind, std::uint64_t linear,
                             std::span<const std::uint8_t> dword) {
  constexpr unsigned kUpperBase = 3;
  if ((kind != InsnKind::local_table && kind != InsnKind::task_register) ||
      !seen_.cpu.walker.long_mode() || ++seen_.flight.accesses != kUpperBase)
    return;
  if (kind == InsnKind::local_table)
    seen_.linear.show(linear + 4, 4, false);
  else
    high_ = dword_of(dword);
}

void TaskRegister::finish() {
  const LoggedSegment task = seen_.cpu.registers.state().tr;
  if ((task.selector & 0xfffc) == 0)
    return seen_.recording.give_up(
        "LTR of a null selector was executed, which processors refuse with #GP(0)");
  base_ = std::uint64_t{high_} << 32 | static_cast<std::uint32_t>(task.base);
}

}  // namespace citcat::monitor
