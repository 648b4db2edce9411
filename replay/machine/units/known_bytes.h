#pragma once
// Looks at memory, as far as evidence gives its contents, without an effect on the machine.

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// Puts what lies at `at` and after it into `bytes`. Returns how many of them are known: those
/// before the first that is not mapped for `access`, or that no evidence defines.
std::size_t known_bytes(CpuContext& cpu, LinearAddr at, Access access,
                        std::span<std::uint8_t> bytes);

}  // namespace citcat
