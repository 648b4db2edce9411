#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "events/archive/container.h"

namespace citcat {

/// The result of checking every byte of a recording archive.
struct RecordingCheck {
  ContainerScan scan;  ///< damage of the file, with the chunks concerned
  /// The recording says that an earlier repair could not save everything.
  std::vector<std::string> losses;
  bool sound() const { return scan.sound() && losses.empty(); }
};

/// Reads every byte of an archive, checks every hash, decodes every chunk and compares the evidence
/// with the totals. Throws IoError, and FormatError for a file that is not a recording at all.
/// `between` is called again and again: what it throws ends the check.
RecordingCheck check_recording(const std::string& path, const std::function<void()>& between = {});

/// Writes what is intact in `from` as `to`, which may be the same name. What was lost is noted in
/// the new archive, and its readers say so. Throws FormatError when no recording can be made of the
/// rest: that needs the META and CPUS chunks.
RecordingCheck repair_recording(const std::string& from, const std::string& to,
                                const std::function<void()>& between = {});

}  // namespace citcat
