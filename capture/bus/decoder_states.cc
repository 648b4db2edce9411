#include "capture/bus/decoder_states.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/bus/burst_bus.h"
#include "capture/bus/bus_output.h"
#include "capture/bus/hex.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Kind = CycleKind;

/// How a bus says which bytes take part.
enum class Lanes : std::uint8_t { one, a0_and_bhe, ble_and_bhe, byte_enables };

struct Status {
  std::span<const Kind> kinds;               ///< by the value of the pins
  std::initializer_list<const char*> names;  ///< of the pins, lowest bit first
};
const Status kOf8086{kStatus8086, {"S0", "S1", "S2"}};
const Status kOf286{kStatus286, {"S0", "S1", "MIO", "CODINTA"}};
const Status kOf386{kDefinition386, {"WR", "DC", "MIO"}};
const Status kOf486{kDefinition486, {"WR", "DC", "MIO"}};

struct StateBus {
  std::string_view id, processor;
  CpuModel cpu;
  unsigned data_bytes;
  int first_address, last_address;  ///< lines
  Lanes lanes;
  const Status& status;
  std::uint32_t halt_address;  ///< of a special cycle; others are shutdowns
};

const StateBus kStateBuses[] = {
    {"8088-states", "8088", CpuModel::i8088, 1, 0, 19, Lanes::one, kOf8086, 0},
    {"8086-states", "8086", CpuModel::i8086, 2, 0, 19, Lanes::a0_and_bhe, kOf8086, 0},
    {"80286-states", "80286", CpuModel::i286, 2, 0, 23, Lanes::a0_and_bhe, kOf286, 2},
    {"386sx-states", "80386SX and EX", CpuModel::i386, 2, 1, 25, Lanes::ble_and_bhe, kOf386, 2},
    {"386dx-states", "80386DX", CpuModel::i386, 4, 2, 31, Lanes::byte_enables, kOf386, 2},
    {"486-states", "i486", CpuModel::i486, 4, 2, 31, Lanes::byte_enables, kOf486, 0},
    {"pentium-states", "Pentium", CpuModel::pentium, 8, 3, 31, Lanes::byte_enables, kOf486, 0},
};

const StateBus& find_state_bus(std::string_view id) {
  const auto it = std::find_if(std::begin(kStateBuses), std::end(kStateBuses),
                               [&](const StateBus& bus) { return bus.id == id; });
  CITCAT_ASSERT(it != std::end(kStateBuses));
  return *it;
}

std::vector<std::string> enable_names(const StateBus& bus) {
  switch (bus.lanes) {
    case Lanes::one:
      return {};
    case Lanes::a0_and_bhe:
      return {"BHE"};
    case Lanes::ble_and_bhe:
      return {"BLE", "BHE"};
    case Lanes::byte_enables:
      break;
  }
  std::vector<std::string> names;
  for (unsigned i = 0; i < bus.data_bytes; ++i) names.push_back("BE" + std::to_string(i));
  return names;
}

class StatesDecoder final : public BusDecoder {
 public:
  StatesDecoder(const SampleInfo& samples, const PinSet& pins)
      : name_(samples.name),
        unit_(samples.unit_bytes),
        bus_(find_state_bus(pins.bus.id)),
        output_(samples.name),
        address_(pins.gather("A", bus_.first_address, bus_.last_address)),
        data_(pins.gather("D", 0, static_cast<int>(8 * bus_.data_bytes) - 1)),
        status_(pins.gather({bus_.status.names.begin(), bus_.status.names.end()})),
        enables_(pins.gather(enable_names(bus_))) {}

  void decode(const SampleBlock& block) override {
    for (std::size_t i = 0; (i + 1) * unit_ <= block.bytes.size(); ++i)
      state(block.bytes.subspan(i * unit_, unit_).data(),
            block.numbers.empty() ? block.first + i : block.numbers[i]);
  }
  void finish() override {}
  bool take(BusTransaction& out) override { return output_.take(out); }

  std::vector<std::string> warnings() const override {
    if (idle_ == 0) return {};
    return {std::to_string(idle_) + " lines that are not bus cycles are left out"};
  }

 private:
  void state(const std::uint8_t* sample, std::uint64_t number) {
    const Kind kind = bus_.status.kinds[status_(sample)];
    if (kind == Kind::none) {
      ++idle_;
      return;
    }
    const PhysAddr address{static_cast<std::uint32_t>(address_(sample) << bus_.first_address)};
    const std::uint64_t data = data_(sample);
    const unsigned lanes = lanes_of(sample, address);
    if (kind == Kind::interrupt_acknowledge) {
      output_.push_acknowledge(number, static_cast<std::uint8_t>(data));
    } else if (kind == Kind::special) {
      special(address, lanes, number);
    } else if (!is_one_run(lanes)) {
      throw FormatError(name_, number,
                        "expected neighbouring bytes to be enabled, found byte enables " +
                            hex(lanes, 1) + " (check them in the channel map)");
    } else {
      output_.push(lanes_transaction(kind, address.begin_of(bus_.data_bytes), lanes, data, number));
    }
  }

  unsigned lanes_of(const std::uint8_t* sample, PhysAddr address) const {
    const auto enables = static_cast<unsigned>(enables_(sample));
    switch (bus_.lanes) {
      case Lanes::one:
        return 1;
      case Lanes::a0_and_bhe:
        return (address.offset_in(2) == 0 ? 1u : 0u) | ((enables & 1) == 0 ? 2u : 0u);
      default:
        return ~enables & ((1u << bus_.data_bytes) - 1);
    }
  }

  void special(PhysAddr address, unsigned lanes, std::uint64_t number) {
    const bool by_enables = bus_.status.kinds.data() == kDefinition486;
    if (by_enables) {
      const auto found = special_cycle(lanes, address);
      if (found) output_.push_special(found->op, number, found->detail);
      if (!found) ++idle_;
      return;
    }
    const bool is_8086 = bus_.status.kinds.data() == kStatus8086;
    // The 386DX has no A1: its halt enables byte 2.
    const std::uint32_t low = bus_.data_bytes == 4 ? (lanes & 4) >> 1 : address.low32() & 2;
    const bool halt = is_8086 || low == bus_.halt_address;
    output_.push_special(halt ? BusOp::halt : BusOp::shutdown, number);
  }

  std::string name_;
  std::size_t unit_;
  const StateBus& bus_;
  BusOutput output_;
  PinGather address_, data_, status_, enables_;
  std::uint64_t idle_ = 0;
};

std::vector<PinDescription> state_pins(const StateBus& bus) {
  std::vector<PinDescription> pins;
  add_pins(pins, "A", bus.first_address, bus.last_address, bus.first_address);
  if (bus.lanes == Lanes::a0_and_bhe) pins[0].required = true;
  const auto require = [&](const std::string& name) { pins.push_back({name, "", true, "", -1}); };
  for (unsigned i = 0; i < 8 * bus.data_bytes; ++i) require("D" + std::to_string(i));
  for (const char* name : bus.status.names) require(name);
  for (const std::string& name : enable_names(bus)) require(name);
  return pins;
}

/// The pins of a row of kStateBuses, as BusDescription::pins has them.
template <std::size_t kRow>
const std::vector<PinDescription>& pins_of_row() {
  static const std::vector<PinDescription> kPins = state_pins(kStateBuses[kRow]);
  return kPins;
}

std::unique_ptr<BusDecoder> make_states(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<StatesDecoder>(samples, pins);
}

template <std::size_t kRow>
BusDescription describe() {
  const StateBus& bus = kStateBuses[kRow];
  static const std::string kText =
      std::string(bus.processor) + " state listing: one line a bus cycle";
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{2} << bus.last_address) - 1);
  return {bus.id,  kText,       bus.cpu, bus.data_bytes, pins_of_row<kRow>, mask, ClockEdge::every,
          nullptr, make_states, true};
}

template <std::size_t... kRows>
std::vector<BusDescription> describe_all(std::index_sequence<kRows...>) {
  return {describe<kRows>()...};
}

}  // namespace

std::span<const BusDescription> state_buses() {
  static const std::vector<BusDescription> kBuses =
      describe_all(std::make_index_sequence<std::size(kStateBuses)>());
  return kBuses;
}

}  // namespace citcat
