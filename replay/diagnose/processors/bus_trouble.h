#pragma once
// Where several processors and their bus do not agree, and what the bus showed around it.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/archive/machine_file.h"
#include "replay/diagnose/processors/bus_change.h"
#include "replay/diagnose/processors/machine_outcome.h"

namespace citcat {

/// One thing that is wrong.
struct BusTrouble {
  std::uint8_t processor = 0;
  std::uint64_t clock = 0;
  std::optional<Position> position;  ///< of its processor
  std::optional<PhysAddr> address;   ///< that two disagree on
  /// A contradiction on the bus; otherwise a replay that diverges from the evidence.
  bool is_contradiction = false;
};

struct ShownEvent {
  BusPlace place;
  SharedEvent event;
  std::uint64_t clock = 0;
};

/// Events around a trouble, in the order of the bus.
struct BusNeighbourhood {
  std::vector<ShownEvent> events;
  /// The same on the line of the trouble's address alone, from farther back.
  std::vector<ShownEvent> line;
  /// After a contradiction, however far: where others have done something and the trouble's
  /// processor goes on, the last thing that they did.
  std::vector<ShownEvent> turns;
  /// The same: the write by which another processor ends a locked access (LOCK#), and the last
  /// event before it of the trouble's processor.
  std::optional<ShownEvent> lock_end, inside_lock;
  /// For a contradiction by a read: what the bus had left in memory there, byte by byte.
  std::vector<std::optional<std::uint8_t>> left;
};

/// Each processor's divergence, and the first contradiction, in the order of the bus.
std::vector<BusTrouble> troubles_of(const MachineFile& machine,
                                    const std::vector<RecordingFile>& files,
                                    const MachineOutcome& outcome);

BusNeighbourhood neighbourhood_of(const MachineFile& machine,
                                  const std::vector<RecordingFile>& files,
                                  const BusTrouble& trouble, std::uint32_t line_bytes);

}  // namespace citcat
