#pragma once
// The registers of a processor in protected or long mode, without a state dump, at an interrupt.
// What the interrupt reads and pushes gives tables, segments and the next instruction; the handler
// saves general registers; page tables seen on the bus turn its addresses into what registers hold.
// docs/placement.md tells where each comes from.

#include "replay/infer/registers/protected_entry.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat {

/// As recover_state(), for a recording that begins with `entry`.
RecoveredState recover_protected_state(Recording recording, const EvidenceSource& evidence,
                                       const ProtectedEntry& entry, TimeBudget* time);

}  // namespace citcat
