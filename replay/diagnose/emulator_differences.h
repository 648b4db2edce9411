#pragma once
// Where QEMU 10, with the monitor inside, differs from a processor: docs/monitor.md, "Where replays
// may diverge" and "Where QEMU is not a processor".

#include <cstdint>
#include <span>
#include <string_view>

namespace citcat {

/// What it does differently at this instruction, for people; "" if no difference is known. `bits`:
/// the default size of the code segment.
std::string_view emulator_difference(std::span<const std::uint8_t> code, unsigned bits);

}  // namespace citcat
