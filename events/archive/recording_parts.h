#pragma once
// One recording in memory, as its chunks are read.

#include <memory>
#include <string>
#include <vector>

#include "events/archive/archive_meta.h"
#include "events/hint.h"
#include "events/placement.h"
#include "events/recording.h"

namespace citcat {

class StandIns;

struct RecordingParts {
  Recording recording;
  ArchiveMeta meta;
  std::vector<ReplayDigest> digests;
  std::vector<PlacedEvent> placements;
  std::vector<Hint> hints;
  /// Translate the addresses of an archive of an earlier version; null in others.
  std::shared_ptr<const StandIns> stand_ins;
  std::vector<std::string> lost;  ///< what repairs could not save, a sentence each
  bool has_meta = false;          ///< the archive has its chunk
  bool has_cpu = false;
  bool has_other_events = false;  ///< others than checkpoints count
};

}  // namespace citcat
