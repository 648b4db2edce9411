#pragma once
// Messages of the APIC bus without the write of a command register (ICR) that asks for them: either
// their sender uses its APIC by MSRs, which are no accesses, or the values that cross no bus lack
// the write. Later accesses to the APIC's registers tell (events/processors/apic_messages.h); if
// there are none, only the replay of the sender does.

#include <cstddef>

#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// Adds a contradiction if the bus shows a message of `processor` for which it wrote no command
/// register, and its replay writes it and the recording lacks this. Replays the processor if there
/// is such a message. `check` has taken all of the bus.
void check_unasked_message(const MachineFile& machine, const CrossCheck& check,
                           std::size_t processor, const ComparisonPolicy& policy,
                           CrossCheckResult& result);

}  // namespace citcat
