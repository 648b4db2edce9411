#pragma once
// A part of a run compared with its evidence, from one checkpoint to another, so that parts can be
// compared side by side. The caller has to check that the parts make up one run, and to sum them
// up: each must begin where the one before ended, and all must show the same order of stores.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/machine/memory_image.h"
#include "formats/io/hash.h"
#include "replay/session/checkpoints.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"
#include "replay/verify/comparison_result.h"
#include "replay/verify/final_memory_check.h"

namespace citcat {

/// From a checkpoint, or the beginning, to another, or the end.
struct PartOfRun {
  std::optional<CheckpointStart> begin, end;
};

/// So many parts of about the same length, fewer where there are not as many checkpoints; one where
/// the comparison of a part would not be that of the whole. No part begins where an interrupt is
/// delivered.
std::vector<PartOfRun> parts_to_compare(const RecordingFile& file, const Checkpoints& checkpoints,
                                        const ComparisonPolicy& policy, unsigned parts);

/// What the comparison of a part has found.
struct ComparedPart {
  Hash128 begin, end;                             ///< of the replay's whole state
  ReplayReport report;                            ///< at the end, of all of the run so far
  VerifyTotals totals;                            ///< of the part
  std::map<std::uint64_t, std::uint64_t> orders;  ///< OrderOfStores::orders()
  FinalMemory memory;                             ///< of the last part
  bool shut_down = false;
  std::uint64_t model_specific_results = 0;  ///< of all of the run so far
  std::string first_model_specific;          ///< of the part; empty where there is none
};

/// Compares plainly. Nullopt where the part does not agree, or agrees only with what was before it:
/// then nothing is known, and the whole run has to be compared. `captured`: memory at the end; may
/// be null.
std::optional<ComparedPart> compare_part(const RecordingFile& file, const Checkpoints& checkpoints,
                                         const PartOfRun& part, const ComparisonPolicy& policy,
                                         const MemoryImage* captured);

/// The parts, in order, as one; nullopt where they are not one run that agrees.
std::optional<ComparedPart> join_parts(const std::vector<ComparedPart>& parts);

}  // namespace citcat
