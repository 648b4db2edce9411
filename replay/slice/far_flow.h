#pragma once
// Far calls, jumps and returns whose flow only the run tells: through gates to other levels, and to
// other tasks.

#include <optional>
#include <span>

#include "replay/slice/access_stream.h"
#include "replay/slice/slice_log.h"
#include "x86/flow/value_flow.h"

namespace citcat {

/// What it did, with `loads` and `stores` filled as the flow numbers them; nullopt where it is none
/// of these, and its flow is the instruction's. Of a delivery `info` is null: it may be to a task.
std::optional<ValueFlow> far_flow(const DecodedInstruction* info,
                                  std::span<const LoggedAccess> accesses, AccessStream& loads,
                                  AccessStream& stores);

}  // namespace citcat
