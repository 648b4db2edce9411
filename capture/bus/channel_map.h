#pragma once
// Which channel of a capture is which pin of the processor. The names of the channels say it, or
// else a JSON file does (docs/channel-maps.md).

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "events/machine/cpu_state.h"
#include "formats/captures/samples.h"

namespace citcat {

/// The contents of a channel-map file; pins that it does not name are matched by name.
struct ChannelMap {
  struct Pin {
    std::optional<std::string> channel;  ///< name or number; nullopt: not captured
    bool inverted = false;
  };
  std::string path;  ///< "" for no file
  std::string bus;   ///< identifier of the bus, "" decides by the pins
  std::optional<ClockEdge> edge;
  unsigned clocks_per_state = 0;  ///< 1 or 2; 0: the usual one of the bus
  std::map<std::string, Pin> pins;
  std::map<std::string, std::string> stems;  ///< stem of pin names to stem of channel names
};

/// Reads a channel map. FormatError names the key that is wrong.
ChannelMap load_channel_map(const std::string& path);
/// The same from text; `name` is for messages.
ChannelMap parse_channel_map(const std::string& text, const std::string& name);

/// A map that comes with the program, for a probe set-up whose channels have no names. Chosen as
/// "preset:NAME" in place of a file, or by itself where the samples decode with it.
struct ChannelPreset {
  const char* name;
  const char* description;
  std::size_t channels;  ///< of the capture
  const char* json;
};
std::span<const ChannelPreset> channel_presets();

/// The channel that was found for one pin, for --explain-channels.
struct PinMatch {
  const PinDescription* pin = nullptr;
  int channel = -1;          ///< -1: no channel
  std::string channel_name;  ///< "" when there is none
  bool inverted = false;
  bool required = false;  ///< as pin->required, but no clock is where every sample is one
};

/// A bus and how well the channels serve it.
struct BusMatch {
  const BusDescription* bus = nullptr;
  CpuModel cpu = CpuModel::unknown;  ///< the one asked for, or that of the bus
  std::vector<PinMatch> pins;
  std::size_t matched = 0;
  std::size_t required_missing = 0;
  std::size_t optional_missing = 0;
};

/// Matches the channels with one bus. FormatError when the map names a pin or channel that does
/// not exist, or gives one channel to two pins.
BusMatch match_bus(const BusDescription& bus, const SampleInfo& samples, const ChannelMap& map);

/// The bus that the map or the processor asks for; otherwise the one that has most of its pins
/// among the channels. FormatError when a required pin is missing, or when the channels are those
/// of no x86 processor.
BusMatch choose_bus(const SampleInfo& samples, const ChannelMap& map, CpuModel cpu);

/// Pins for a decoder. Address bits without a channel leave the mask.
PinAssignment assign_pins(const BusMatch& match, const ChannelMap& map);

/// Name of another bus whose typical channels these are ("Z80", "LPC", ...), or "".
std::string foreign_bus(const SampleInfo& samples);

/// Lower case, without the marks that set one writing of a pin name apart from another: brackets,
/// blanks, and what marks an active-low pin (/RD, RD#, RD_N, -RD, nRD is left as it is).
std::string normalised_pin_name(const std::string& name);

}  // namespace citcat
