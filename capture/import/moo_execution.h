#pragma once
// Tests of the 8086 and its relatives. Such a test begins and ends in the middle of execution: the
// queue holds code that was fetched before the first row, and the rows show when a byte of it is
// taken, as the processor's pins do. So the tests are followed as the pins are.

#include <cstdint>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/cpu_state.h"
#include "formats/captures/moo.h"

namespace citcat {

/// Fetches of what the queue holds at first, then cycles and instruction starts of the rows, and
/// the start of the instruction after the one that is tested: the test ends where its first byte
/// is taken. Throws FormatError, with the row as offset, for rows that no bus shows, and where the
/// queue does not end with the contents that the test has.
std::vector<BusTransaction> executed_transactions(const MooTest& test, CpuModel cpu,
                                                  std::uint32_t bus_bytes);

}  // namespace citcat
