#include "capture/bus/channel_map.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxMapBytes = 1 << 20;

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw FormatError(file, 0, message);
}

std::string channel_text(const json& value, const std::string& key, const std::string& file) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  fail(file,
       "expected '" + key + "' to be the name or number of a channel, found " + json_text(value));
}

ChannelMap::Pin parse_pin(const json& value, const std::string& key, const std::string& file) {
  ChannelMap::Pin pin;
  if (value.is_null()) return pin;
  if (!value.is_object()) {
    pin.channel = channel_text(value, key, file);
    return pin;
  }
  for (const auto& item : value.items()) {
    if (item.key() == "channel") {
      if (!item.value().is_null()) pin.channel = channel_text(item.value(), key, file);
    } else if (item.key() == "invert" && item.value().is_boolean()) {
      pin.inverted = item.value().get<bool>();
    } else {
      fail(file, "expected 'channel' or 'invert' (true or false) in '" + key + "', found '" +
                     item.key() + "': " + json_text(item.value()));
    }
  }
  return pin;
}

/// "AD": [..] is AD0, AD1, ... in the order of the list; "A8": [..] begins with A8. "A": "ADDR"
/// stands for channels ADDR0, ADDR1, ... as far as there are any: they are found by that stem.
void parse_lanes(const json& lanes, const std::string& stem, ChannelMap& map) {
  if (lanes.is_string()) {
    map.stems[stem] = lanes.get<std::string>();
    return;
  }
  if (!lanes.is_array())
    fail(map.path,
         "expected 'lanes." + stem + "' to be a list of channels or the stem of their names");
  const auto digits = stem.find_last_not_of("0123456789") + 1;
  const std::string letters = stem.substr(0, digits);
  std::size_t number =
      digits < stem.size() && stem.size() - digits < 4 ? std::stoul(stem.substr(digits)) : 0;
  for (const json& lane : lanes) {
    const std::string name = letters + std::to_string(number++);
    map.pins[name] = parse_pin(lane, "lanes." + stem, map.path);
  }
}

ClockEdge parse_edge(const json& value, const std::string& file) {
  if (value == "rising") return ClockEdge::rising;
  if (value == "falling") return ClockEdge::falling;
  if (value == "every") return ClockEdge::every;
  fail(file, "expected 'clock_edge' to be \"rising\", \"falling\" or \"every\", found " +
                 json_text(value));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string channel_list(const SampleInfo& samples) {
  std::vector<std::string> names;
  for (const std::string& name : samples.channels)
    if (!name.empty()) names.push_back(name);
  if (names.size() > 64) names.resize(64);
  return joined(names);
}

/// Channels by normalised name; of two with the same name the first.
std::map<std::string, int> channels_by_name(const SampleInfo& samples) {
  std::map<std::string, int> channels;
  for (std::size_t i = 0; i < samples.channels.size(); ++i)
    if (!samples.channels[i].empty())
      channels.emplace(normalised_pin_name(samples.channels[i]), static_cast<int>(i));
  return channels;
}

int find_channel(const std::string& wanted, const SampleInfo& samples) {
  for (std::size_t i = 0; i < samples.channels.size(); ++i)
    if (samples.channels[i] == wanted) return static_cast<int>(i);
  const bool number = !wanted.empty() && wanted.size() < 5 &&
                      wanted.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoul(wanted) >= samples.channels.size()) return -1;
  return std::stoi(wanted);
}

int match_by_name(const PinDescription& pin, const std::map<std::string, int>& channels,
                  const ChannelMap& map) {
  const auto digits = pin.name.find_last_not_of("0123456789") + 1;
  const auto stem = map.stems.find(pin.name.substr(0, digits));
  if (stem != map.stems.end()) {
    const auto it = channels.find(normalised_pin_name(stem->second + pin.name.substr(digits)));
    return it == channels.end() ? -1 : it->second;
  }
  std::istringstream names(pin.name + " " + pin.aliases);
  for (std::string name; names >> name;) {
    const auto it = channels.find(normalised_pin_name(name));
    if (it != channels.end()) return it->second;
  }
  return -1;
}

/// Signals by which other buses are known. All of a row must be among the channels.
struct ForeignBus {
  const char* name;  ///< with its article
  const char* signals;
};
constexpr ForeignBus kForeign[] = {
    {"a Z80", "mreq iorq m1"}, {"an 8048/8039 (MCS-48)", "psen ale"},
    {"an LPC", "lframe lad0"}, {"a 6502", "sync rw phi2"},
    {"a 68000", "uds lds as"}, {"an I2C", "scl sda"},
    {"an SPI", "miso mosi"},
};

std::string missing_pins(const BusMatch& match) {
  std::vector<std::string> names;
  for (const PinMatch& pin : match.pins)
    if (pin.channel < 0 && pin.required) names.push_back(pin.pin->name);
  return joined(names);
}

/// What VcdTransactionWriter of capture/inspect/convert.cc writes.
bool is_transaction_vcd(const SampleInfo& samples) {
  const std::vector<std::string>& channels = samples.channels;
  const auto has = [&](const char* name) {
    return std::find(channels.begin(), channels.end(), name) != channels.end();
  };
  return has("op0") && has("address0") && has("size0") && has("data0");
}

}  // namespace

std::string normalised_pin_name(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool low_suffix = name.size() > 2 && (name.ends_with("_N") || name.ends_with("_n"));
  if (low_suffix) text.pop_back();
  return text;
}

ChannelMap parse_channel_map(const std::string& text, const std::string& name) {
  ChannelMap map;
  map.path = name;
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) fail(name, "expected a JSON object, found something else");
  for (const auto& item : root.items()) {
    const json& value = item.value();
    if (item.key() == "bus" && value.is_string()) {
      map.bus = value.get<std::string>();
      if (find_bus(map.bus) == nullptr)
        fail(name, "expected 'bus' to be a known bus, found '" + map.bus + "'");
    } else if (item.key() == "clock_edge") {
      map.edge = parse_edge(value, name);
    } else if (item.key() == "clocks_per_state" && (value == 1 || value == 2)) {
      map.clocks_per_state = value.get<unsigned>();
    } else if (item.key() == "pins" && value.is_object()) {
      for (const auto& pin : value.items())
        map.pins[pin.key()] = parse_pin(pin.value(), "pins." + pin.key(), name);
    } else if (item.key() == "lanes" && value.is_object()) {
      for (const auto& lanes : value.items()) parse_lanes(lanes.value(), lanes.key(), map);
    } else if (item.key() != "comment") {
      fail(name,
           "expected 'bus', 'clock_edge', 'clocks_per_state' (1 or 2), 'pins', 'lanes' or "
           "'comment', found '" +
               item.key() + "': " + json_text(value).substr(0, 40));
    }
  }
  return map;
}

ChannelMap load_channel_map(const std::string& path) {
  constexpr std::string_view kPreset = "preset:";
  if (path.compare(0, kPreset.size(), kPreset) == 0) {
    std::string names;
    for (const ChannelPreset& preset : channel_presets()) {
      if (path.substr(kPreset.size()) == preset.name) return parse_channel_map(preset.json, path);
      names += (names.empty() ? "" : ", ") + std::string(preset.name);
    }
    throw UsageError("unknown channel preset '" + path.substr(kPreset.size()) + "'; known are " +
                     names);
  }
  const auto bytes = read_whole_file(path, kMaxMapBytes);
  return parse_channel_map(std::string(bytes.begin(), bytes.end()), path);
}

BusMatch match_bus(const BusDescription& bus, const SampleInfo& samples, const ChannelMap& map) {
  BusMatch match;
  match.bus = &bus;
  const auto channels = channels_by_name(samples);
  std::set<std::string> known;
  std::map<int, std::string> taken;
  for (const PinDescription& pin : bus.pins()) {
    PinMatch entry;
    entry.pin = &pin;
    const bool clock = pin.name == "CLK" || pin.name == "CLK2";
    entry.required = pin.required && !(clock && map.edge == ClockEdge::every);
    known.insert(pin.name);
    const auto chosen = map.pins.find(pin.name);
    if (chosen == map.pins.end()) {
      entry.channel = match_by_name(pin, channels, map);
    } else {
      entry.inverted = chosen->second.inverted;
      if (chosen->second.channel) {
        entry.channel = find_channel(*chosen->second.channel, samples);
        if (entry.channel < 0)
          fail(map.path, "pin " + pin.name + ": expected a channel of the capture (" +
                             channel_list(samples) + "), found '" + *chosen->second.channel + "'");
      }
    }
    if (entry.channel >= 0) {
      entry.channel_name = samples.channels[static_cast<std::size_t>(entry.channel)];
      const auto [other, fresh] = taken.emplace(entry.channel, pin.name);
      if (!fresh)
        fail(map.path.empty() ? samples.name : map.path,
             "expected one pin a channel, found '" + entry.channel_name + "' used for both " +
                 other->second + " and " + pin.name);
      ++match.matched;
    } else {
      ++(entry.required ? match.required_missing : match.optional_missing);
    }
    match.pins.push_back(std::move(entry));
  }
  for (const auto& pin : map.pins)
    if (known.count(pin.first) == 0)
      fail(map.path, "expected a pin of " + std::string(bus.id) + ", found '" + pin.first + "'");
  return match;
}

std::string foreign_bus(const SampleInfo& samples) {
  const auto channels = channels_by_name(samples);
  for (const ForeignBus& bus : kForeign) {
    std::istringstream signals(bus.signals);
    bool all = true;
    for (std::string signal; signals >> signal;) all = all && channels.count(signal) != 0;
    if (all) return bus.name;
  }
  return "";
}

/// A pin that is taken by its name must have one channel of that name.
void refuse_equal_names(const SampleInfo& samples, const BusMatch& match, const ChannelMap& map) {
  for (const PinMatch& entry : match.pins) {
    if (entry.channel < 0 || map.pins.count(entry.pin->name) != 0) continue;
    const auto first = static_cast<std::size_t>(entry.channel);
    for (std::size_t i = first + 1; i < samples.channels.size(); ++i)
      if (samples.channels[i] == samples.channels[first])
        fail(samples.name, "pin " + entry.pin->name + ": expected one channel '" +
                               samples.channels[i] + "', found channels " + std::to_string(first) +
                               " and " + std::to_string(i) +
                               " of that name (name one by its number with --channels)");
  }
}

BusMatch choose_bus(const SampleInfo& samples, const ChannelMap& map, CpuModel cpu) {
  std::optional<BusMatch> best;
  for (const BusDescription& bus : bus_descriptions()) {
    if (!map.bus.empty() ? map.bus != bus.id : is_known(cpu) && !bus.is_of(cpu)) continue;
    if (map.bus.empty() && bus.by_name_only) continue;
    // A map that does not name its bus may fit only one of them.
    BusMatch match;
    try {
      match = match_bus(bus, samples, map);
    } catch (const FormatError&) {
      if (!map.bus.empty()) throw;
      continue;
    }
    match.cpu = is_known(cpu) ? cpu : bus.cpu;
    const auto rank = [](const BusMatch& m) {
      return std::make_pair(-static_cast<long>(m.required_missing), static_cast<long>(m.matched));
    };
    if (!best || rank(match) > rank(*best)) best = std::move(match);
  }
  if (!best)
    fail(map.path.empty() ? samples.name : map.path,
         "expected pins that together are a known processor bus, found none that fits");
  if (best->required_missing == 0) {
    refuse_equal_names(samples, *best, map);
    return *std::move(best);
  }
  const std::string foreign = map.path.empty() ? foreign_bus(samples) : "";
  if (!foreign.empty())
    fail(samples.name, "expected the pins of an x86 processor, found " + foreign +
                           " bus (channels " + channel_list(samples) +
                           "): this is not an x86 capture");
  if (is_transaction_vcd(samples)) {
    fail(
        samples.name,
        "expected the pins of a processor, found transactions as signals, which `convert --to vcd` "
        "makes for waveform viewers of captures without pins: import what they were made of, or "
        "convert it to csv");
  }
  fail(samples.name, "expected the pins of an x86 processor, found channels " +
                         channel_list(samples) + "; the nearest bus is " +
                         std::string(best->bus->id) + ", which lacks " + missing_pins(*best) +
                         " (name them with --channels, see docs/channel-maps.md; "
                         "`import --match-channels` proposes a map by how they move)");
}

PinAssignment assign_pins(const BusMatch& match, const ChannelMap& map) {
  PinAssignment assignment;
  assignment.cpu = match.cpu;
  assignment.edge = map.edge.value_or(match.bus->edge);
  assignment.clocks_per_state = map.clocks_per_state;
  assignment.address_mask = match.bus->address_mask;
  for (const PinMatch& pin : match.pins) {
    assignment.pins.push_back({pin.channel, pin.inverted});
    if (pin.pin->address_bit >= 0 && pin.channel < 0)
      assignment.address_mask &= ~(std::uint32_t{1} << pin.pin->address_bit);
  }
  return assignment;
}

}  // namespace citcat
