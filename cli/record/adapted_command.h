#pragma once
// An emulator's command line as it can be recorded: options that cannot be recorded are replaced by
// the nearest ones that can, and each change is reported.

#include <string>
#include <vector>

namespace citcat {

struct AdaptedCommand {
  std::vector<std::string> command;
  unsigned processors = 1;
  /// A sentence for each change: what there was, what is there now, and why.
  std::vector<std::string> changes;
};

/// Replaces other accelerators than software emulation, more processors than `most_processors`,
/// memory backends of the user's, system management mode of several processors, more memory than
/// can be shown, the monitor's own options, and what processors have that no replayer executes.
AdaptedCommand adapted_command(const std::vector<std::string>& command, unsigned most_processors);
/// So many processors can share a bus in a recording.
inline constexpr unsigned kMostRecordedProcessors = 14;

/// A processor as -cpu names one, without what cannot be recorded; the same where nothing is left
/// out. `wide`: the emulator is one of 64 bits.
std::string recordable_processor(const std::string& model, bool wide);

}  // namespace citcat
