#include "cli/commands/import_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/inspect/activity_match.h"
#include "capture/inspect/explain.h"
#include "formats/io/atomic_file.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

Json pins_json(const BusMatch& match) {
  Json pins = Json::array();
  for (const PinMatch& pin : match.pins) {
    const bool captured = pin.channel >= 0;
    Json json;
    json["pin"] = pin.pin->name;
    json["channel"] = nullptr;
    json["name"] = nullptr;
    if (captured) {
      json["channel"] = pin.channel;
      json["name"] = pin.channel_name;
    }
    json["inverted"] = pin.inverted;
    json["required"] = pin.required;
    json["cost"] = nullptr;
    if (!captured && !pin.required) json["cost"] = pin.pin->cost;
    pins.push_back(std::move(json));
  }
  return pins;
}

Json bus_json(const BusMatch& match) {
  Json json;
  json["bus"] = match.bus->id;
  json["description"] = match.bus->description;
  json["missing"] = match.required_missing;
  json["pins"] = pins_json(match);
  return json;
}

Json channels_json(const ChannelExplanation& e) {
  Json json;
  json["capture"] = e.capture;
  json["format"] = e.format;
  json["channels"] = e.channels;
  json["bus"] = nullptr;
  if (e.bus) json["bus"] = bus_json(*e.bus);
  json["unused"] = e.unused;
  json["notes"] = e.notes;
  json["address_mask"] = nullptr;
  if (e.no_bus.empty()) json["address_mask"] = fmt::format("0x{:x}", e.address_mask);
  json["no_bus"] = nullptr;
  if (!e.no_bus.empty()) json["no_bus"] = e.no_bus;
  json["looks_like"] = nullptr;
  if (!e.foreign.empty()) json["looks_like"] = e.foreign;
  json["nearest"] = Json::array();
  for (const BusMatch& match : e.nearest) json["nearest"].push_back(bus_json(match));
  json["presets"] = e.presets;
  return json;
}

/// A channel as a channel map names it: by its name if it has one of its own, else by its number.
Json channel_of(const SampleInfo& info, std::size_t channel) {
  const std::string& name = info.channels[channel];
  if (!name.empty() && std::count(info.channels.begin(), info.channels.end(), name) == 1)
    return name;
  return channel;
}

/// The proposal as a channel map, docs/channel-maps.md.
Json map_json(const ActivityMatch& match, const SampleInfo& info) {
  Json map;
  map["comment"] = "proposed by how the channels of " + info.name + " move";
  map["bus"] = match.bus;
  map["pins"] = Json::object();
  for (const ActivityMatch::Pin& pin : match.pins) {
    const Json channel = channel_of(info, pin.channel);
    map["pins"][pin.pin] = pin.inverted ? Json{{"channel", channel}, {"invert", true}} : channel;
  }
  for (const std::string& pin : match.missing) map["pins"][pin] = nullptr;
  return map;
}

Json proposal_json(const ActivityMatch& match, const SampleInfo& info) {
  Json json;
  json["bus"] = match.bus;
  json["pins"] = Json::array();
  for (const ActivityMatch::Pin& pin : match.pins)
    json["pins"].push_back({{"pin", pin.pin},
                            {"channel", pin.channel},
                            {"name", info.channels[pin.channel]},
                            {"reason", pin.reason}});
  json["missing"] = match.missing;
  json["doubts"] = match.doubts;
  return json;
}

}  // namespace

void print_formats(bool json, const Console& console) {
  Json rows = Json::array();
  for (const FormatRow& row : list_formats()) {
    if (json) {
      rows.push_back(
          {{"format", row.id}, {"description", row.description}, {"written", row.written}});
    } else {
      console.print_line(fmt::format("{:<12} {:<14} {}", row.id,
                                     row.written ? "read, written" : "read", row.description));
    }
  }
  if (json) console.print_json({{"formats", rows}});
}

void print_channels(const std::vector<std::string>& captures, const CaptureOptions& options,
                    bool json, const Console& console) {
  const ChannelExplanation explanation = explain_channels(captures, options);
  if (json) {
    console.print_json(channels_json(explanation));
    return;
  }
  for (const std::string& line : channel_lines(explanation)) console.print_line(line);
}

void propose_channels(const std::vector<std::string>& captures, const CaptureOptions& options,
                      const std::string& map_path, bool json, const Console& console) {
  const auto samples = open_channels(captures, options);
  const ActivityMatch match = match_by_activity(*samples, options.cpu);
  const SampleInfo& info = samples->info();
  const std::string map = json_text(map_json(match, info), 2) + "\n";
  AtomicFile file(map_path);
  file.write({reinterpret_cast<const std::uint8_t*>(map.data()), map.size()});
  file.commit();
  if (json) {
    console.print_json(proposal_json(match, info));
    return;
  }
  console.print_line(fmt::format("bus: {}", match.bus));
  for (const ActivityMatch::Pin& pin : match.pins)
    console.print_line(fmt::format("  {:<5} channel {:<4} {:<8} {}", pin.pin, pin.channel,
                                   info.channels[pin.channel], pin.reason));
  for (const std::string& pin : match.missing)
    console.print_line(fmt::format("  {:<5} no channel moves like it", pin));
  for (const std::string& doubt : match.doubts) console.print_line("in doubt: " + doubt);
  console.print_line(fmt::format("written to {}: look it over, then import with --channels {}",
                                 map_path, map_path));
}

}  // namespace citcat
