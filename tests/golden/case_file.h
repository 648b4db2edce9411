#pragma once
// A golden case: a program of a few instructions, what came from outside while it ran, and the
// trace that must come of it, all in one file to be read. README.md beside this file has the
// grammar.

#include <filesystem>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "events/recording.h"

namespace citcat::testing {

struct CaseFile {
  Recording recording;
  /// What a bus showed of the run, where the file says: its interrupts are then without a place.
  std::vector<BusTransaction> bus;
  std::string given;   ///< everything up to and including the line "expect"
  std::string expect;  ///< everything after it
};

/// The recording and evidence of a case that says what the bus showed.
ImportedRecording import_case(const CaseFile& file);

/// Throws FormatError, with the line's number as the offset.
CaseFile load_case(const std::filesystem::path& path);

}  // namespace citcat::testing
