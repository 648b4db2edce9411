#pragma once
// Where a recorded run and the log of an emulator separate.

#include <cstdint>
#include <optional>

#include "formats/captures/emulator_log.h"
#include "sql/compare/run_difference.h"

namespace citcat::sql {

struct LogDifference {
  std::uint64_t compared = 0;  ///< entries of the log that the run agrees with
  bool began = false;          ///< some entry is the first instruction of the run
  bool differs = false;
  std::optional<ComparedInstruction> run;  ///< that comes next there; nothing at its end
  std::optional<EmulatorLogEntry> log;     ///< the same
};

/// The run from `from` on, and the log from the first entry with the address of that instruction
/// on. A handler of an interrupt that the log does not enter at the same place is passed over in
/// the run; one that it enters is compared.
LogDifference difference_of(RowSource& source, std::uint64_t from, EmulatorLog& log);

}  // namespace citcat::sql
