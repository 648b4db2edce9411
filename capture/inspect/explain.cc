#include "capture/inspect/explain.h"

#include <algorithm>
#include <set>

#include "capture/bus/channel_map.h"
#include "capture/bus/hex.h"
#include "capture/import/sample_formats.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::size_t kNearestBuses = 3;

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  if (out.size() < width) out.append(width - out.size(), ' ');
  return out;
}

std::string channel_text(const PinMatch& pin) {
  std::string text = "channel " + std::to_string(pin.channel);
  if (!pin.channel_name.empty()) text += " '" + pin.channel_name + "'";
  if (pin.inverted) text += ", inverted";
  return text;
}

void explain_pins(const BusMatch& match, std::vector<std::string>& lines) {
  for (const PinMatch& pin : match.pins)
    if (pin.channel >= 0) lines.push_back("  " + padded(pin.pin->name, 10) + channel_text(pin));
  for (const PinMatch& pin : match.pins) {
    if (pin.channel >= 0) continue;
    const std::string cost =
        pin.required ? "missing, and nothing can be decoded without it" : pin.pin->cost;
    lines.push_back("  " + padded(pin.pin->name, 10) + "not captured: " + cost);
  }
}

void explain_unused(const BusMatch& match, const SampleInfo& samples,
                    std::vector<std::string>& lines) {
  std::set<int> used;
  for (const PinMatch& pin : match.pins) used.insert(pin.channel);
  std::string names;
  for (std::size_t i = 0; i < samples.channels.size(); ++i)
    if (used.count(static_cast<int>(i)) == 0 && !samples.channels[i].empty())
      names += (names.empty() ? "" : ", ") + samples.channels[i];
  if (!names.empty()) lines.push_back("channels nobody uses: " + names);
}

/// The buses most of whose required pins are there, the best first.
void explain_nearest(const SampleInfo& samples, const ChannelMap& map,
                     std::vector<std::string>& lines) {
  std::vector<BusMatch> matches;
  for (const BusDescription& bus : bus_descriptions()) {
    if (map.bus.empty() ? bus.by_name_only : map.bus != bus.id) continue;
    try {
      matches.push_back(match_bus(bus, samples, map));
    } catch (const FormatError&) {
      // The map is for another bus.
    }
  }
  std::stable_sort(matches.begin(), matches.end(), [](const BusMatch& a, const BusMatch& b) {
    return a.required_missing < b.required_missing;
  });
  if (matches.size() > kNearestBuses) matches.resize(kNearestBuses);
  for (const BusMatch& match : matches) {
    lines.push_back("nearest bus: " + std::string(match.bus->id) + ", " +
                    std::to_string(match.matched) + " pins found, " +
                    std::to_string(match.required_missing) + " missing");
    explain_pins(match, lines);
  }
}

}  // namespace

std::vector<std::string> list_formats() {
  std::vector<std::string> lines;
  for (const CaptureFormat& format : capture_formats())
    lines.push_back(padded(format.id, 14) + std::string(format.description));
  return lines;
}

std::vector<std::string> explain_channels(const std::vector<std::string>& paths,
                                          const CaptureOptions& options) {
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat* format = options.format.empty() ? detect_capture_format(paths[0])
                                                       : find_capture_format(options.format);
  if (format == nullptr) throw FormatError(paths[0], 0, "expected a capture, found none");
  const auto samples = open_samples(format->id, paths);
  if (!samples)
    throw UsageError(paths[0] + ": format '" + std::string(format->id) +
                     "' holds records, not channels");
  const SampleInfo& info = samples->info();
  std::vector<std::string> lines;
  lines.push_back(info.name + ": " + std::string(format->id) + ", " +
                  std::to_string(info.channels.size()) + " channels");
  ChannelMap map;
  if (!options.channel_map_path.empty()) map = load_channel_map(options.channel_map_path);
  try {
    const BusMatch match = choose_bus(info, map, options.cpu);
    lines.push_back("bus: " + std::string(match.bus->id) + ", " +
                    std::string(match.bus->description));
    explain_pins(match, lines);
    explain_unused(match, info, lines);
    // Opening looks further: at lines that never move, at presets.
    const auto capture = open_capture(paths, options);
    for (const std::string& warning : capture->info().warnings) lines.push_back("note: " + warning);
    lines.push_back("address bits captured: " + hex(capture->info().address_mask, 8));
  } catch (const FormatError& error) {
    lines.push_back(std::string("no bus: ") + error.what());
    const std::string foreign = foreign_bus(info);
    if (!foreign.empty()) lines.push_back("the channels look like those of " + foreign + " bus");
    explain_nearest(info, map, lines);
    for (const ChannelPreset& preset : channel_presets())
      if (preset.channels == info.channels.size())
        lines.push_back(std::string("try --channels preset:") + preset.name + " (" +
                        preset.description + ")");
  }
  return lines;
}

}  // namespace citcat
