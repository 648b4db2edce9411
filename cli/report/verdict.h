#pragma once
// The verdict about a replay that was compared with its evidence, as `verify` prints it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/accounting_report.h"
#include "cli/cache_report.h"
#include "cli/placed_recording.h"
#include "replay/run/part_comparison.h"
#include "replay/run/replay_session.h"
#include "replay/session/replay_report.h"
#include "replay/verify/code/code_check.h"
#include "replay/verify/verifier.h"

namespace citcat {

struct Verdict {
  ReplayReport report;
  VerifyTotals totals;
  FinalMemory memory;
  bool captured_memory = false;  ///< an image was given to compare with
  bool hardware_stream = false;  ///< the capture has one, or branch trace messages
  bool match = false;
  bool shut_down = false;       ///< the run ends in a shutdown
  bool shows_shutdown = false;  ///< and so does the capture
  std::uint64_t model_specific_results = 0;
  std::string first_model_specific;  ///< empty when there is none
  std::vector<PlacedEvent> placements;
  std::optional<CacheVerdict> cache;
  std::optional<Accounting> accounting;
  std::optional<CodeComparison> code;  ///< with files that hold it
  double clock_hz = 0;                 ///< clocks of the capture a second; 0 if it is not known
};

/// The verdict of a session that ended with `report`. Compares the final memory with `captured`,
/// where that is null with what the bus shows. Throws UsageError for a session that does not
/// compare with evidence.
Verdict verdict_of(ReplaySession& session, const ReplayReport& report,
                   const PlacedRecording& placed, const MemoryImage* captured);

/// The same of a run whose parts were compared, and agree.
Verdict verdict_of(const ComparedPart& whole, const PlacedRecording& placed, bool captured_memory);

/// As `verify --json` prints it.
nlohmann::ordered_json verdict_json(const Verdict& verdict);

}  // namespace citcat
