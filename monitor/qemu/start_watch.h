#pragma once
// Waiting for the trigger, with as little instrumentation as it needs.

#include <memory>

#include "monitor/qemu/monitor.h"

namespace citcat::monitor {

/// Instruments one instruction. `before`: the kind of the one before it in its block.
void watch_for_start(qemu_plugin_tb* block, qemu_plugin_insn* handle, InsnKind before,
                     std::unique_ptr<Insn> insn);
/// OUT is about to be executed: whether it completes the trigger.
bool is_trigger_port_write(PortWatch& watch, const Insn& insn);
/// What an instruction writes that runs between the trigger and the beginning.
void note_model(const Insn& insn);

}  // namespace citcat::monitor
