#pragma once
// Stores of a processor to lines that the bus does not show it to own. What a processor stores in
// its cache appears on the bus only when the line leaves the cache. A store to a line that it
// shares with others needs an invalidation first, and one to a line that it lacks needs a fill for
// a store (MESI: Intel SDM vol. 3, 11.4). If the capture lacks either and no processor uses the
// line again, only memory at the end shows the store.

#include <cstddef>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/archive/recording_file.h"
#include "events/machine/address.h"
#include "events/processors/cross_check.h"
#include "replay/machine/machine.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// Lines of RAM in which the replay of one processor holds other bytes at its end, at `at_end`,
/// than the bus showed last: the processor has changed them in its cache. Empty without a
/// write-back cache. Ascending.
std::vector<PhysAddr> lines_changed_in_cache(const RecordingFile& file, const Machine& at_end);

/// Adds a contradiction for each of these lines of `processor` that the bus shows to be another's,
/// or shared. Only stores before the processor's last transaction count: behind that, the capture
/// may lack what it would have shown next. Replays the processor again if there is such a line.
void check_changed_lines(const MachineFile& machine, const CrossCheck& check, std::size_t processor,
                         const std::vector<PhysAddr>& changed, const ComparisonPolicy& policy,
                         CrossCheckResult& result);

}  // namespace citcat
