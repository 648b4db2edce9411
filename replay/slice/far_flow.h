#pragma once
// Far calls, jumps and returns whose flow only the run shows: through gates to other levels, and to
// other tasks.

#include <optional>
#include <span>

#include "replay/slice/access_stream.h"
#include "replay/slice/slice_log.h"
#include "x86/flow/value_flow.h"

namespace citcat {

/// The flow of a far transfer, with `loads` and `stores` filled as it numbers them. nullopt if the
/// instruction is not a far transfer, and its flow is the ordinary one. `info` is null for a
/// delivery, which may be to a task.
std::optional<ValueFlow> far_flow(const DecodedInstruction* info,
                                  std::span<const LoggedAccess> accesses, AccessStream& loads,
                                  AccessStream& stores);

}  // namespace citcat
