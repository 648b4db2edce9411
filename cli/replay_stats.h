#pragma once
// Prints the result of `replay --stats`: the work of a replay and the time that it took.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat {

struct ReplayStats {
  MachineStats machine;  ///< of the replay that gave the result, if it was begun anew
  ReplayReport report;
  std::uint64_t started_at = 0;  ///< instruction
  double open_seconds = 0;       ///< to read the recording and find its interrupts
  double replay_seconds = 0;     ///< to replay and write
};

/// The value of the key "stats" (docs/cli.md).
nlohmann::ordered_json stats_json(const ReplayStats& stats);
/// The same for people.
std::vector<std::string> stats_lines(const ReplayStats& stats);

}  // namespace citcat
