#pragma once
// The bus as it was captured around a place of the run, beside what the replay does there.

#include <cstddef>
#include <functional>
#include <string>

#include "debugger/target/debug_target.h"
#include "events/bus_transaction.h"

namespace citcat {

/// `count` transactions before the place where `target` is and as many from it on, and as many
/// of the replay's accesses, in one list in the order of positions. A capture without counts is
/// shown around the transaction that the schedule names next. Throws UsageError where the archive
/// holds no evidence.
std::string bus_window(DebugTarget& target, std::size_t count,
                       const std::function<std::string(const BusTransaction&)>& text,
                       const DebugTarget::Interrupt& interrupt);

}  // namespace citcat
