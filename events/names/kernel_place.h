#pragma once

#include <cstdint>
#include <optional>

#include "events/cpu_state.h"
#include "events/names/symbol_module.h"

namespace citcat {

/// How far the kernel that `state` was dumped of lies from where its symbols say: Linux may put
/// itself somewhere else each time it starts (CONFIG_RANDOMIZE_BASE), which its System.map does not
/// know and /proc/kallsyms does. The processor knows where SYSENTER (MSR 176h) and SYSCALL
/// (MSR C0000082h) go, and the symbols what that is called. Nullopt where either does not say.
std::optional<std::int64_t> kernel_shift(const SymbolModule& kernel, const CpuState& state);

/// Kernels are moved by whole pages at least (CONFIG_PHYSICAL_ALIGN): another shift is of another
/// kernel.
inline bool is_kernel_shift(std::int64_t shift) { return shift % kPageSize == 0; }

}  // namespace citcat
