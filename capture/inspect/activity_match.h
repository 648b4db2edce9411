#pragma once
// Finds which channel of a capture is which pin from how the channels move, for captures whose
// names do not say it. For a processor up to the 386SX that is enough: the clock alternates; a few
// lines begin and end the cycles; code is fetched in order of addresses, so that each address line
// changes when all below it wrap; jumps lead where code is fetched.

#include <string>
#include <string_view>
#include <vector>

#include "capture/inspect/bus_controls.h"
#include "events/machine/cpu_state.h"

namespace citcat {

/// A proposal, not a proof: a replay that matches is the proof.
struct ActivityMatch {
  using Pin = ControlMatch::Pin;
  std::string_view bus;              ///< identifier of the bus
  std::vector<Pin> pins;             ///< in the order in which they were found
  std::vector<std::string> missing;  ///< pins of that bus which no channel moves like
  std::vector<std::string> doubts;   ///< what the capture does not say, one line each
};

/// Matches the channels of a capture; looks at its first 16 MiB of samples. Channels whose names
/// are those of another bus than the 8088's in maximum mode are taken by their names, but for pairs
/// that look exchanged. `cpu`: unknown tries each bus. FormatError, with the name of the capture,
/// says what was looked for and not found.
ActivityMatch match_by_activity(SampleSource& source, CpuModel cpu = CpuModel::unknown);

}  // namespace citcat
