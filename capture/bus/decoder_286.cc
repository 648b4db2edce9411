#include "capture/bus/decoder_286.h"

#include <algorithm>
#include <optional>

#include "capture/bus/bus_output.h"
#include "capture/bus/clocked_decoder.h"
#include "capture/bus/hex.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Kind = CycleKind;

/// Halt shows byte address 2, shutdown 0 (386EX manual, table 6-2; 80286 data sheet, the same).
constexpr std::uint32_t kHaltAddress = 2;

struct AddressPhase {
  Kind kind = Kind::none;
  std::uint64_t clock = 0;
  PhysAddr word;       ///< address of the bus word
  unsigned lanes = 0;  ///< enabled bytes
};

/// Groups clock periods into bus states, finds address phases and the ends of data phases.
class StateDecoder : public ClockedDecoder {
 public:
  bool take(BusTransaction& out) override { return output_.take(out); }

 protected:
  StateDecoder(const SampleInfo& samples, const PinSet& pins, const std::string& clock_pin)
      : ClockedDecoder(samples, pins, clock_pin),
        output_(samples.name),
        divide_(pins.assignment.clocks_per_state != 0 ? pins.assignment.clocks_per_state
                                                      : kClocksPerState) {}

  /// Whether an address phase shows in this sample (ADS# or an active status).
  virtual bool address_shows(const std::uint8_t* sample) const = 0;
  virtual AddressPhase address_phase(const std::uint8_t* sample, std::uint64_t clock) const = 0;
  virtual bool ready(const std::uint8_t* sample) const = 0;
  /// The cycle's data phase ends with this sample.
  virtual void complete(const AddressPhase& phase, const std::uint8_t* sample) = 0;
  /// Whether another address may appear before the data of the current cycle.
  virtual bool pipelines() const = 0;

  BusOutput output_;

 private:
  // The processors divide CLK (80286) or CLK2 (80386) by two.
  static constexpr unsigned kClocksPerState = 2;

  void clock(const Period& period) override {
    const bool shows = address_shows(period.last);
    // States are aligned by the address phases: each begins a state.
    if (shows && !shows_) {
      phase_ = 0;
      begin_address(period);
    }
    shows_ = shows;
    if (++phase_ < divide_) return;
    phase_ = 0;
    end_state(period);
  }

  void begin_address(const Period& period) {
    const AddressPhase phase = address_phase(period.last, period.begin);
    if (!current_) {
      current_ = phase;
      current_age_ = 0;
    } else if (!pending_ && pipelines()) {
      pending_ = phase;
    } else {
      throw FormatError(name(), period.begin,
                        "expected READY# to end a bus cycle before the next one, found none "
                        "(check READY# and the clock in the channel map)");
    }
  }

  /// READY# counts from the second state of a cycle on.
  void end_state(const Period& period) {
    if (!current_) return;
    if (current_age_++ == 0 || !ready(period.last)) return;
    complete(*current_, period.last);
    current_ = pending_;
    pending_.reset();
    current_age_ = 0;
  }

  void end() override {}

  unsigned divide_;
  unsigned phase_ = 0;
  bool shows_ = true;  // a cycle under way at the beginning has lost its address
  std::optional<AddressPhase> current_, pending_;
  std::uint64_t current_age_ = 0;
};

// ---- 16-bit buses: 80286 and 386SX/EX

class Decoder16 final : public StateDecoder {
 public:
  Decoder16(const SampleInfo& samples, const PinSet& pins, bool is_286)
      : StateDecoder(samples, pins, is_286 ? "CLK" : "CLK2"), is_286_(is_286) {
    const auto mask = pins.bus.address_mask;
    int last = 0;
    while ((mask >> (last + 1)) != 0) ++last;
    address_ = pins.gather("A", is_286 ? 0 : 1, last);
    data_ = pins.gather("D", 0, 15);
    control_ = is_286 ? pins.gather({"S0", "S1", "MIO", "CODINTA", "BHE", "READY"})
                      : pins.gather({"WR", "DC", "MIO", "BLE", "BHE", "READY", "ADS"});
  }

 protected:
  bool address_shows(const std::uint8_t* sample) const override {
    const std::uint64_t control = control_(sample);
    return is_286_ ? (control & 3) != 3 : (control & 0x40) == 0;
  }

  AddressPhase address_phase(const std::uint8_t* sample, std::uint64_t clock) const override {
    const std::uint64_t control = control_(sample);
    AddressPhase phase;
    phase.clock = clock;
    phase.kind = is_286_ ? kStatus286[control & 15] : kDefinition386[control & 7];
    if (phase.kind == Kind::none)
      throw FormatError(
          name(), clock,
          "expected the status of a bus cycle, found " + hex(control & (is_286_ ? 15 : 7), 1) +
              ", which the processor does not use (check its pins in the channel map)");
    const auto address = static_cast<std::uint32_t>(address_(sample));
    const bool high = ((control >> 4) & 1) == 0;
    const bool low = is_286_ ? (address & 1) == 0 : ((control >> 3) & 1) == 0;
    phase.word = PhysAddr{is_286_ ? address & ~1u : address << 1};
    phase.lanes = (low ? 1u : 0u) | (high ? 2u : 0u);
    const bool moves_data =
        phase.kind != Kind::special && phase.kind != Kind::interrupt_acknowledge;
    if (moves_data && phase.lanes == 0)
      throw FormatError(
          name(), clock,
          "expected a bus cycle to move a byte, found none enabled at " + hex(phase.word.value, 6));
    return phase;
  }

  bool ready(const std::uint8_t* sample) const override {
    return ((control_(sample) >> 5) & 1) == 0;
  }
  bool pipelines() const override { return !is_286_; }

  void complete(const AddressPhase& phase, const std::uint8_t* sample) override {
    const std::uint64_t data = data_(sample);
    if (phase.kind == Kind::interrupt_acknowledge) {
      output_.push_acknowledge(phase.clock, static_cast<std::uint8_t>(data));
    } else if (phase.kind == Kind::special) {
      const bool halt = (phase.word.low32() & 2) == kHaltAddress;
      output_.push_special(halt ? BusOp::halt : BusOp::shutdown, phase.clock);
    } else {
      output_.push(lanes_transaction(phase.kind, phase.word, phase.lanes, data, phase.clock));
    }
  }

 private:
  bool is_286_;
  PinGather address_, data_, control_;
};

// ---- 32-bit bus: 386DX

class Decoder386Dx final : public StateDecoder {
 public:
  Decoder386Dx(const SampleInfo& samples, const PinSet& pins)
      : StateDecoder(samples, pins, "CLK2"),
        address_(pins.gather("A", 2, 31)),
        data_(pins.gather("D", 0, 31)),
        control_(pins.gather({"WR", "DC", "MIO", "BE0", "BE1", "BE2", "BE3", "READY", "ADS"})),
        bus_size_(pins.gather({"BS16"})),
        has_bus_size_(pins.has("BS16")) {}

 protected:
  bool address_shows(const std::uint8_t* sample) const override {
    return ((control_(sample) >> 8) & 1) == 0;
  }

  AddressPhase address_phase(const std::uint8_t* sample, std::uint64_t clock) const override {
    const std::uint64_t control = control_(sample);
    AddressPhase phase;
    phase.clock = clock;
    phase.kind = kDefinition386[control & 7];
    phase.word = PhysAddr{static_cast<std::uint32_t>(address_(sample) << 2)};
    phase.lanes = static_cast<unsigned>(~control >> 3) & 15;
    if (phase.kind == Kind::none || !is_one_run(phase.lanes))
      throw FormatError(name(), clock,
                        "expected a bus cycle of neighbouring bytes, found definition " +
                            hex(control & 7, 1) + " with byte enables " + hex(phase.lanes, 1) +
                            " (check M/IO#, D/C#, W/R# and BE# in the channel map)");
    return phase;
  }

  bool ready(const std::uint8_t* sample) const override {
    return ((control_(sample) >> 7) & 1) == 0;
  }
  bool pipelines() const override { return true; }

  void complete(const AddressPhase& phase, const std::uint8_t* sample) override {
    std::uint64_t data = data_(sample);
    unsigned lanes = phase.lanes;
    // A 16-bit device answers on D15-0; bytes of both halves take two cycles, the lower half
    // first (386DX data sheet, "Dynamic data bus sizing").
    const bool narrow = has_bus_size_ && bus_size_(sample) == 0;
    if (narrow && (lanes & 3) != 0) {
      lanes &= 3;
    } else if (narrow && !is_write(phase.kind)) {
      data = (data & 0xffff) << 16;
    }
    if (phase.kind == Kind::interrupt_acknowledge) {
      output_.push_acknowledge(phase.clock, static_cast<std::uint8_t>(data));
    } else if (phase.kind == Kind::special) {
      const bool halt = (phase.lanes & 4) != 0;
      output_.push_special(halt ? BusOp::halt : BusOp::shutdown, phase.clock);
    } else {
      output_.push(lanes_transaction(phase.kind, phase.word, lanes, data, phase.clock));
    }
  }

 private:
  PinGather address_, data_, control_, bus_size_;
  bool has_bus_size_;
};

PinDescription required(const char* name, const char* aliases = "") {
  return {name, aliases, true, "", -1};
}

std::vector<PinDescription> address_and_data(int first_address, int last_address, int data_lines) {
  std::vector<PinDescription> pins;
  add_pins(pins, "A", first_address, last_address, first_address);
  for (int i = 0; i < data_lines; ++i) pins.push_back(required(("D" + std::to_string(i)).c_str()));
  return pins;
}

}  // namespace

const std::vector<PinDescription>& pins_286() {
  static const std::vector<PinDescription> kPins = [] {
    auto pins = address_and_data(0, 23, 16);
    pins[0].required = true;  // A0 selects a byte lane
    for (const auto& pin : {required("CLK"), required("S0"), required("S1"), required("MIO"),
                            required("CODINTA", "COD"), required("BHE"), required("READY", "RDY")})
      pins.push_back(pin);
    return pins;
  }();
  return kPins;
}

const std::vector<PinDescription>& pins_386sx() {
  static const std::vector<PinDescription> kPins = [] {
    auto pins = address_and_data(1, 25, 16);
    // The SX ends at A23, the EX at A25.
    for (const auto& pin :
         {required("CLK2", "CLK"), required("ADS"), required("MIO"), required("DC"), required("WR"),
          required("BLE"), required("BHE"), required("READY", "RDY")})
      pins.push_back(pin);
    return pins;
  }();
  return kPins;
}

const std::vector<PinDescription>& pins_386dx() {
  static const std::vector<PinDescription> kPins = [] {
    auto pins = address_and_data(2, 31, 32);
    for (const auto& pin : {required("CLK2", "CLK"), required("ADS"), required("MIO"),
                            required("DC"), required("WR"), required("BE0"), required("BE1"),
                            required("BE2"), required("BE3"), required("READY", "RDY")})
      pins.push_back(pin);
    pins.push_back({"BS16", "", false, "accesses to 16-bit devices are taken for 32-bit ones", -1});
    return pins;
  }();
  return kPins;
}

std::unique_ptr<BusDecoder> make_286(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder16>(samples, pins, true);
}
std::unique_ptr<BusDecoder> make_386sx(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder16>(samples, pins, false);
}
std::unique_ptr<BusDecoder> make_386dx(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder386Dx>(samples, pins);
}

}  // namespace citcat
