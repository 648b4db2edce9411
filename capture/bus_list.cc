// The table of processor buses. A new one is one row here and a decoder.

#include <algorithm>

#include "capture/bus_decoder.h"
#include "capture/decoder_8086.h"
#include "formats/error.h"

namespace citcat {
namespace {

const BusDescription kBuses[] = {
    {"8088-max", "8088 in maximum mode (IBM PC and XT)", CpuModel::i8088, 1, pins_8088_max, 0xfffff,
     "A19", make_8086_max},
    {"8086-max", "8086 in maximum mode", CpuModel::i8088, 2, pins_8086_max, 0xfffff, "A19",
     make_8086_max},
};

}  // namespace

std::span<const BusDescription> bus_descriptions() { return kBuses; }

const BusDescription* find_bus(std::string_view id) {
  const auto it = std::find_if(std::begin(kBuses), std::end(kBuses),
                               [&](const BusDescription& bus) { return bus.id == id; });
  return it == std::end(kBuses) ? nullptr : &*it;
}

const PinChoice& PinSet::pin(const std::string& name) const {
  const auto& pins = bus.pins();
  for (std::size_t i = 0; i < pins.size(); ++i)
    if (pins[i].name == name) return assignment.pins.at(i);
  throw InternalError("bus " + std::string(bus.id) + " has no pin " + name);
}

PinGather PinSet::gather(const std::vector<std::string>& names) const {
  std::vector<PinChoice> choices;
  for (const std::string& name : names) choices.push_back(pin(name));
  return PinGather(choices);
}

PinGather PinSet::gather(const std::string& stem, int first, int last) const {
  std::vector<std::string> names;
  for (int i = first; i <= last; ++i) names.push_back(stem + std::to_string(i));
  return gather(names);
}

}  // namespace citcat
