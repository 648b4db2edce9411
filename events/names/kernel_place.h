#pragma once

#include <cstdint>
#include <optional>

#include "events/machine/cpu_state.h"
#include "events/names/symbol_module.h"

namespace citcat {

/// How far the kernel that `state` was dumped from was moved from the addresses in its symbols:
/// Linux may put itself somewhere else each time it starts (CONFIG_RANDOMIZE_BASE), which
/// /proc/kallsyms shows and System.map does not. The processor knows the addresses to which
/// SYSENTER (MSR 176h) and SYSCALL (MSR C0000082h) go, and the symbols have the names of these
/// places. Nullopt if either is missing.
std::optional<std::int64_t> kernel_shift(const SymbolModule& kernel, const CpuState& state);

/// Kernels are moved by whole pages at least (CONFIG_PHYSICAL_ALIGN): any other shift belongs to
/// another kernel.
inline bool is_kernel_shift(std::int64_t shift) { return shift % kPageSize == 0; }

}  // namespace citcat
