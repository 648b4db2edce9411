#pragma once
// Which channel of a capture is which pin, by how the channels move, for captures whose names do
// not say it. What an 8088 in maximum mode shows of itself is enough (Intel 8088 data sheet, "Bus
// Timing - Maximum Mode System"): the clock alternates; the status lines go to a code and back
// together; code is fetched in order of addresses, so that each address line changes when all below
// it wrap; A16-A19 change to segment status within a cycle.

#include <string>
#include <string_view>
#include <vector>

#include "capture/inspect/channel_activity.h"
#include "events/machine/cpu_state.h"

namespace citcat {

/// A proposal, not a proof: a replay that matches is the proof.
struct ActivityMatch {
  struct Pin {
    std::string pin;  ///< as its bus description names it
    std::size_t channel = 0;
    std::string reason;  ///< by what it was found, for people
  };
  std::string_view bus;              ///< identifier of the bus
  std::vector<Pin> pins;             ///< in the order in which they were found
  std::vector<std::string> missing;  ///< pins of that bus which no channel moves like
  std::vector<std::string> doubts;   ///< what the capture does not say, one line each
};

/// Matches the channels of a capture; looks at its first 16 MiB of samples. Channels whose names
/// are those of another bus than the 8088's in maximum mode are taken by their names, but for pairs
/// that look exchanged. `cpu`: unknown if it is not known. FormatError, with the name of the
/// capture, says what was looked for and not found.
ActivityMatch match_by_activity(SampleSource& source, CpuModel cpu = CpuModel::unknown);

}  // namespace citcat
