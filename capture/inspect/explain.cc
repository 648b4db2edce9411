#include "capture/inspect/explain.h"

#include <algorithm>
#include <set>

#include "capture/bus/channel_map.h"
#include "capture/bus/hex.h"
#include "capture/import/sample_formats.h"
#include "capture/inspect/convert.h"
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

std::vector<std::string> unused_channels(const BusMatch& match, const SampleInfo& samples) {
  std::set<int> used;
  for (const PinMatch& pin : match.pins) used.insert(pin.channel);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < samples.channels.size(); ++i)
    if (used.count(static_cast<int>(i)) == 0 && !samples.channels[i].empty())
      names.push_back(samples.channels[i]);
  return names;
}

/// The buses most of whose required pins are there, the best first.
std::vector<BusMatch> nearest_buses(const SampleInfo& samples, const ChannelMap& map) {
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
  return matches;
}

/// Fills in what helps where no bus fits.
void explain_failure(const SampleInfo& samples, const ChannelMap& map, ChannelExplanation& e) {
  e.foreign = foreign_bus(samples);
  e.nearest = nearest_buses(samples, map);
  for (const ChannelPreset& preset : channel_presets())
    if (preset.channels == samples.channels.size())
      e.presets.push_back(std::string(preset.name) + " (" + preset.description + ")");
}

/// `names` with commas between.
std::string comma_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::vector<FormatRow> list_formats() {
  const auto targets = convert_targets();
  std::vector<FormatRow> rows;
  for (const CaptureFormat& format : capture_formats()) {
    const bool written = std::any_of(targets.begin(), targets.end(),
                                     [&](const ConvertTarget& t) { return t.id == format.id; });
    rows.push_back({format.id, format.description, written});
  }
  return rows;
}

std::unique_ptr<SampleSource> open_channels(const std::vector<std::string>& paths,
                                            const CaptureOptions& options) {
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat* format = options.format.empty() ? detect_capture_format(paths[0])
                                                       : find_capture_format(options.format);
  if (format == nullptr) throw FormatError(paths[0], 0, "expected a capture, found none");
  auto samples = open_samples(format_in_full(format->id, options), paths);
  if (!samples)
    throw UsageError(paths[0] + ": format '" + std::string(format->id) +
                     "' holds records, not channels");
  return samples;
}

ChannelExplanation explain_channels(const std::vector<std::string>& paths,
                                    const CaptureOptions& options) {
  const auto samples = open_channels(paths, options);
  const SampleInfo& info = samples->info();
  ChannelExplanation e;
  e.capture = info.name;
  e.format = options.format.empty() ? detect_capture_format(paths[0])->id : options.format;
  e.channels = info.channels.size();
  ChannelMap map;
  if (!options.channel_map_path.empty()) map = load_channel_map(options.channel_map_path);
  try {
    e.bus = choose_bus(info, map, options.cpu);
    e.unused = unused_channels(*e.bus, info);
    // Opening looks further: at lines that never move, at presets.
    const auto capture = open_capture(paths, options);
    e.notes = capture->info().warnings;
    e.address_mask = capture->info().address_mask;
  } catch (const FormatError& error) {
    e.no_bus = error.what();
    explain_failure(info, map, e);
  }
  return e;
}

std::vector<std::string> channel_lines(const ChannelExplanation& e) {
  std::vector<std::string> lines;
  lines.push_back(e.capture + ": " + e.format + ", " + std::to_string(e.channels) + " channels");
  if (e.bus) {
    lines.push_back("bus: " + std::string(e.bus->bus->id) + ", " +
                    std::string(e.bus->bus->description));
    explain_pins(*e.bus, lines);
    if (!e.unused.empty()) lines.push_back("unused channels: " + comma_list(e.unused));
  }
  for (const std::string& note : e.notes) lines.push_back("note: " + note);
  if (e.no_bus.empty()) {
    lines.push_back("address bits captured: " + hex(e.address_mask, 8));
    return lines;
  }
  lines.push_back("no bus: " + e.no_bus);
  if (!e.foreign.empty()) lines.push_back("the channels look like those of " + e.foreign + " bus");
  for (const BusMatch& match : e.nearest) {
    lines.push_back("nearest bus: " + std::string(match.bus->id) + ", " +
                    std::to_string(match.matched) + " pins found, " +
                    std::to_string(match.required_missing) + " missing");
    explain_pins(match, lines);
  }
  for (const std::string& preset : e.presets) lines.push_back("try --channels preset:" + preset);
  if (e.foreign.empty())
    lines.push_back("try --match-channels MAP.json: it proposes a map by how the channels move");
  return lines;
}

}  // namespace citcat
