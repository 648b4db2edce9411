#pragma once
// For tests of the driver: what it dumped beside what the emulator says, at the same instruction.

namespace citcat::monitor {

void write_probe();

}  // namespace citcat::monitor
