#pragma once
// Decides when `import` completes addresses that the capture does not show (capture/complete).

#include <cstdint>
#include <memory>
#include <string>

#include "capture/bus/source.h"
#include "capture/import/import.h"

namespace citcat {

/// The values of the option --complete-addresses.
enum class Completion : std::uint8_t { automatic, always, never };
Completion parse_completion(const std::string& text);

/// The state after a reset of a processor that has one that is known (8086 Family User's Manual,
/// 2.7). Throws UsageError for others.
CpuState state_after_reset(CpuModel model);

/// The capture, with its addresses completed where `how` and the capture ask for it: where lines
/// below the highest are missing, and the options tell a state to begin with.
std::unique_ptr<CaptureReader> with_whole_addresses(std::unique_ptr<CaptureReader> capture,
                                                    const ImportOptions& options, Completion how);

}  // namespace citcat
