#pragma once
// Single-step tests as captures: each test is a segment with its own initial state.

#include <memory>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "formats/captures/moo.h"

namespace citcat {

/// The model that stands for a processor of MOO files.
CpuModel cpu_model_of(MooCpu cpu);

/// Bus transactions of one test, in order. The last one is the HALT that ends it; of the 8086 and
/// its relatives, what capture/import/moo_execution.h says. `clock` is the row of the cycle's first
/// clock. Throws FormatError, with the row as offset, for rows that no bus shows.
std::vector<BusTransaction> transactions_of(const MooTest& test, MooCpu cpu);

/// The registers the test begins with, as the rig loads them. Bits that the rig does not load are
/// left at their values after reset: bits 12-15 of the 80286's FLAGS (clear in real mode), the
/// upper half of EFLAGS, CR0, CR3, DR6 and DR7.
CpuState initial_state_of(const MooTest& test, MooCpu cpu);

int detect_moo(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_moo_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);

}  // namespace citcat
