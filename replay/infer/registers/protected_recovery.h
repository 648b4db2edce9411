#pragma once
// The registers of a processor in protected or long mode, without a state dump, at an interrupt.
// The tables, the segments and the next instruction come from what the interrupt reads and pushes,
// the general registers from what the handler saves. Page tables seen on the bus convert physical
// addresses to linear ones. docs/placement.md says where each register comes from.

#include "replay/infer/registers/protected_entry.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat {

/// As recover_state(), for a recording that begins with `entry`.
RecoveredState recover_protected_state(Recording recording, const EvidenceSource& evidence,
                                       const ProtectedEntry& entry, TimeBudget* time);

}  // namespace citcat
