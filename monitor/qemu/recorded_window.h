#pragma once
// The window of the run that is recorded: it begins, every instruction and access of it is reported
// to the recorder, and it ends.

#include <cstdint>

#include "monitor/qemu/monitor.h"

namespace citcat::monitor {

// Callbacks of the emulator. `user`: the instruction.
void on_start(unsigned processor, void* user);
void on_load(unsigned processor, qemu_plugin_meminfo_t info, std::uint64_t linear, void* user);
void on_store(unsigned processor, qemu_plugin_meminfo_t info, std::uint64_t linear, void* user);
/// Reports to the recorder the instructions that were begun since the last report. All of them are
/// of one block, and ended plainly.
void catch_up();

}  // namespace citcat::monitor
