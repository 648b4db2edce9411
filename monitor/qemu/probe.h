#pragma once
// For tests of the driver: writes its dump beside the emulator's state at the same instruction.

namespace citcat::monitor {

void write_probe();

}  // namespace citcat::monitor
