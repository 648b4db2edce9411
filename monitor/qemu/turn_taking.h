#pragma once
// Which of several processors has its turn.

#include "monitor/qemu/monitor.h"

namespace citcat::monitor {

/// The processor that the emulator runs. In one thread, QEMU 10 gives callbacks the number of the
/// one for which their block was translated (accel/tcg/plugin-gen.c, gen_cpu_index()).
Processor& running();
/// Something happens: whose turn it is.
void hear();
/// Turns are kept short, so that processors meet as they do on a real bus.
void end_turn_in_time();

}  // namespace citcat::monitor
