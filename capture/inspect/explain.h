#pragma once
// Facts that people need before they import: the known formats, and the channel that was chosen for
// each pin.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/bus/channel_map.h"
#include "capture/bus/source.h"

namespace citcat {

/// A capture format, and what can be done with it.
struct FormatRow {
  std::string_view id;           ///< for --format and --to
  std::string_view description;  ///< one line
  bool written = false;          ///< `convert` writes it; every format is read
};
/// All formats, in the order of detection.
std::vector<FormatRow> list_formats();

/// Opens a capture as samples of channels. UsageError for a format that has none; throws what
/// open_capture() throws.
std::unique_ptr<SampleSource> open_channels(const std::vector<std::string>& paths,
                                            const CaptureOptions& options);

/// Which channel was taken for which pin.
struct ChannelExplanation {
  std::string capture;              ///< the name of its first file
  std::string format;               ///< CaptureFormat::id
  std::size_t channels = 0;         ///< how many there are
  std::optional<BusMatch> bus;      ///< the bus that was chosen
  std::vector<std::string> unused;  ///< channels that serve no pin of it
  std::vector<std::string>
      notes;  ///< what opening the capture found: lines that never move, presets
  std::uint64_t address_mask = 0;  ///< address bits that were captured; of a bus that fits
  std::string no_bus;              ///< why none fits; empty when one does
  // Where none does:
  std::string foreign;               ///< the bus of another processor that the channels look like
  std::vector<BusMatch> nearest;     ///< the best first
  std::vector<std::string> presets;  ///< "NAME (DESCRIPTION)" of those with as many channels
};

/// For `citcat import --explain-channels CAPTURE`. Throws what open_capture() throws, except for
/// channels that do not fit; UsageError for a format that has no channels.
ChannelExplanation explain_channels(const std::vector<std::string>& paths,
                                    const CaptureOptions& options);
/// The same for people: the bus, every pin with its channel, what is missing and what that costs.
std::vector<std::string> channel_lines(const ChannelExplanation& explanation);

}  // namespace citcat
