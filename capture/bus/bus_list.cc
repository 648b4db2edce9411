// The table of processor buses. A new one is one row here and a decoder.

#include <algorithm>
#include <iterator>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/decoder_286.h"
#include "capture/bus/decoder_486.h"
#include "capture/bus/decoder_8086.h"
#include "capture/bus/decoder_states.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// Inputs and outputs are looked at where the processor takes or has driven them: before CLK falls
// on the 8086 and 80286, before it rises on the later ones.
const BusDescription kBuses[] = {
    {"8088-max", "8088 or V20 in maximum mode (IBM PC and XT), 80188", CpuModel::i8088, 1,
     pins_8088_max, 0xfffff, ClockEdge::rising, "A19", make_8086_max},
    {"8086-max", "8086 or V30 in maximum mode, 80186", CpuModel::i8086, 2, pins_8086_max, 0xfffff,
     ClockEdge::rising, "A19", make_8086_max},
    {"8088-min", "8088 or V20 in minimum mode", CpuModel::i8088, 1, pins_8088_min, 0xfffff,
     ClockEdge::rising, "A19", make_8086_min},
    {"8086-min", "8086 or V30 in minimum mode", CpuModel::i8086, 2, pins_8086_min, 0xfffff,
     ClockEdge::rising, "A19", make_8086_min},
    {"80286", "80286", CpuModel::i286, 2, pins_286, 0xffffff, ClockEdge::rising, nullptr, make_286},
    {"386sx", "80386SX and 80386EX, 16 bits, pipelined or not", CpuModel::i386, 2, pins_386sx,
     0x3ffffff, ClockEdge::falling, nullptr, make_386sx},
    {"386dx", "80386DX, 32 bits, pipelined or not", CpuModel::i386, 4, pins_386dx, 0xffffffff,
     ClockEdge::falling, nullptr, make_386dx},
    {"486", "i486 SX, DX, DX2, DX4", CpuModel::i486, 4, pins_486, 0xffffffff, ClockEdge::falling,
     nullptr, make_486},
    {"pentium", "Pentium, 64 bits", CpuModel::pentium, 8, pins_pentium, 0xffffffff,
     ClockEdge::falling, nullptr, make_pentium},
    {"k5", "AMD-K5: a Pentium bus with branch trace messages of its own", CpuModel::pentium, 8,
     pins_pentium, 0xffffffff, ClockEdge::falling, nullptr, make_pentium, true},
};

struct OtherBuses {
  CpuModel cpu;
  std::string_view buses;
};
constexpr OtherBuses kOtherBuses[] = {
#define CITCAT_BUSES(MODEL, NUMBER, NAME, TRAITS, BUSES) {CpuModel::MODEL, BUSES},
    CITCAT_PROCESSORS(CITCAT_BUSES)
#undef CITCAT_BUSES
};

}  // namespace

bool BusDescription::is_of(CpuModel model) const {
  if (model == cpu) return true;
  const std::string name = ' ' + std::string(id) + ' ';
  return std::any_of(std::begin(kOtherBuses), std::end(kOtherBuses), [&](const OtherBuses& row) {
    return row.cpu == model && (' ' + std::string(row.buses) + ' ').find(name) != std::string::npos;
  });
}

std::span<const BusDescription> bus_descriptions() {
  static const std::vector<BusDescription> kAll = [] {
    std::vector<BusDescription> all(std::begin(kBuses), std::end(kBuses));
    const auto states = state_buses();
    all.insert(all.end(), states.begin(), states.end());
    return all;
  }();
  return kAll;
}

const BusDescription* find_bus(std::string_view id) {
  const auto buses = bus_descriptions();
  const auto it = std::find_if(buses.begin(), buses.end(),
                               [&](const BusDescription& bus) { return bus.id == id; });
  return it == buses.end() ? nullptr : &*it;
}

const PinChoice& PinSet::pin(const std::string& name) const {
  const auto& pins = bus.pins();
  for (std::size_t i = 0; i < pins.size(); ++i)
    if (pins[i].name == name) return assignment.pins.at(i);
  throw InternalError("bus " + std::string(bus.id) + " has no pin " + name);
}

PinGather PinSet::gather(const std::vector<std::string>& names) const {
  std::vector<PinChoice> choices;
  choices.reserve(names.size());
  for (const std::string& name : names) choices.push_back(pin(name));
  return PinGather(choices);
}

std::uint64_t PinSet::absent(std::initializer_list<std::pair<const char*, unsigned>> bits) const {
  std::uint64_t found = 0;
  for (const auto& [name, bit] : bits)
    if (!has(name)) found |= std::uint64_t{1} << bit;
  return found;
}

PinGather PinSet::gather(const std::string& stem, int first, int last) const {
  std::vector<std::string> names;
  for (int i = first; i <= last; ++i) names.push_back(stem + std::to_string(i));
  return gather(names);
}

}  // namespace citcat
