#include "cli/commands/import_questions.h"

#include <fmt/format.h>

#include "capture/inspect/explain.h"

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

}  // namespace

void print_formats(bool json, const Console& console) {
  Json rows = Json::array();
  for (const FormatRow& row : list_formats()) {
    if (json) {
      rows.push_back(
          {{"format", row.id}, {"description", row.description}, {"written", row.written}});
    } else {
      console.print(fmt::format("{:<12} {:<14} {}\n", row.id,
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
  for (const std::string& line : channel_lines(explanation)) console.print(line + "\n");
}

}  // namespace citcat
