#pragma once
// Between the host and a tool is a guard process, which runs no tool: it starts the tool's process,
// ends as that ended, and also ends every process that the tool started, wherever it hid.

namespace citcat::tools {

/// Called in the process that the host has started, before anything of the tool is loaded. Returns
/// in a process below, confined (confinement.h), in which the tool is to run. The one that called
/// never returns: it exits with the status of the other, or dies by the signal by which that died.
/// Before, it ends everything that was begun below it: when the tool's process ends, when SIGTERM
/// comes, and when the host has gone.
void begin_guarded();

}  // namespace citcat::tools
