#pragma once
// Keeps the process of a tool off the memory of others. It protects from mistakes of the tool, and
// the tool cannot reach into the program that runs it. It is no sandbox: the tool may still read
// and write all files that the user may.

#include <sys/types.h>

namespace citcat::tools {

/// From now on processes of the same user can neither read nor write the memory of this one, nor
/// trace it (PR_SET_DUMPABLE, proc_pid_mem(5)). It leaves no core file then.
void close_to_others();
/// The contrary.
void open_to_others();

/// For the process that a tool is to be loaded in, and all that it begins: it gains no rights by
/// running programs; has no capabilities but those about files; is closed to others. Where the
/// system has seccomp, and this program was built with libseccomp, it can neither trace, nor read
/// or write the memory of another process, nor leave its group, nor send signals to `host` and
/// `guard`. Whatever of that the system refuses is left out.
void confine(pid_t host, pid_t guard);

}  // namespace citcat::tools
