// The bus of the 8086 and 8088 in minimum mode, whose control lines the processor drives itself.

#include "capture/bus/bus_output.h"
#include "capture/bus/clocked_decoder.h"
#include "capture/bus/decoder_8086.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Kind = CycleKind;

/// SSO#, DT/R#, IO/M# as bits 0 to 2 (8088 data sheet, table "Status bit encoding", minimum mode).
constexpr Kind kStatus8088Min[8] = {
    Kind::code_read, Kind::data_read, Kind::data_write, Kind::none, Kind::interrupt_acknowledge,
    Kind::io_read,   Kind::io_write,  Kind::special};

// S4 and S3, on A17 and A16 after T1, are 1 0 for code and for accesses without a segment (8086
// data sheet, table "S4, S3").
constexpr std::uint64_t kCodeSegment = 2;

// Strobes go low in T2, the clock after ALE's (8086 data sheet, "Bus timing - minimum mode
// system"); one more is allowed for samples near the edge. What comes later is another master's: a
// halted processor gives the bus away, and its lines RD# and WR# with it.
constexpr unsigned kClocksToStrobe = 2;

enum Control : unsigned { kAleMin, kRdMin, kWrMin, kIntaMin, kIoMin, kDtMin, kSsoMin, kBheMin };

class Decoder8086Min final : public ClockedDecoder {
 public:
  Decoder8086Min(const SampleInfo& samples, const PinSet& pins)
      : ClockedDecoder(samples, pins, "CLK"),
        output_(samples.name),
        wide_(pins.bus.bus_bytes == 2) {
    std::vector<std::string> address, control{"ALE", "RD", "WR", "INTA"};
    const int data_lines = wide_ ? 16 : 8;
    for (int i = 0; i < 20; ++i)
      address.push_back((i < data_lines ? "AD" : "A") + std::to_string(i));
    data_ = pins.gather({address.begin(), address.begin() + data_lines});
    address_ = pins.gather(address);
    control.push_back(wide_ ? "MIO" : "IOM");
    control.push_back("DTR");
    if (!wide_) control.push_back("SSO");
    control_ = pins.gather(control);
    if (wide_) enable_ = pins.gather({"BHE"});
    has_sso_ = !wide_ && pins.has("SSO") && pins.has("DTR");
    if (!has_sso_ && !(pins.has("A16") && pins.has("A17")))
      throw FormatError(
          name(), 0,
          wide_ ? "expected A16 and A17, whose S3 and S4 distinguish code from data, found "
                  "one of them missing"
                : "expected A16 and A17, or SSO and DTR, which distinguish code from data, "
                  "found neither pair whole");
  }

  bool take(BusTransaction& out) override { return output_.take(out); }

 protected:
  void clock(const Period& period) override {
    const std::uint64_t control = control_(period.last);
    const auto low = [&](unsigned pin) { return ((control >> pin) & 1) == 0; };
    // ALE is as wide as the low half of T1, and may end as soon as CLK rises (8086 data sheet, A.C.
    // characteristics: TLHLL, TCHLL).
    const std::uint64_t latch = control_(period.before) | control_(period.first) | control;
    if (((latch >> kAleMin) & 1) != 0) {
      end_cycle();
      begin(period, control);
      return;
    }
    if (!open_) return;
    const bool strobe = low(kRdMin) || low(kWrMin) || low(kIntaMin);
    if (strobe) {
      // The last clock of the strobe has the data.
      if (!strobed_) kind_ = kind_of_strobe(low(kRdMin), low(kWrMin), period);
      data_value_ = data_(period.last);
      strobed_ = true;
    } else if (strobed_ || ++clocks_without_strobe_ == kClocksToStrobe) {
      end_cycle();
    }
  }

  void end() override { end_cycle(); }

 private:
  void begin(const Period& period, std::uint64_t control) {
    open_ = true;
    strobed_ = false;
    clocks_without_strobe_ = 0;
    begin_ = period.begin;
    place_ = PhysAddr{static_cast<std::uint32_t>(address_(period.last))};
    high_lane_ = wide_ && enable_(period.last) == 0;
    const bool io_high = ((control >> kIoMin) & 1) != 0;
    // IO/M# of the 8088 is M/IO# of the 8086.
    io_ = wide_ ? !io_high : io_high;
    const std::uint64_t status = ((control >> kSsoMin) & 1) | ((control >> kDtMin) & 1) << 1 |
                                 ((control >> kIoMin) & 1) << 2;
    status_kind_ = has_sso_ ? kStatus8088Min[status] : Kind::none;
  }

  Kind kind_of_strobe(bool read, bool write, const Period& period) const {
    if (write) return io_ ? Kind::io_write : Kind::data_write;
    if (!read) return Kind::interrupt_acknowledge;
    if (io_) return Kind::io_read;
    if (has_sso_) return status_kind_ == Kind::code_read ? Kind::code_read : Kind::data_read;
    const std::uint64_t segment = (address_(period.last) >> 16) & 3;
    return segment == kCodeSegment ? Kind::code_read : Kind::data_read;
  }

  void end_cycle() {
    if (!open_) return;
    open_ = false;
    if (!strobed_) {
      // ALE and nothing else is a halt; on the 8088 the status says so too.
      if (!has_sso_ || status_kind_ == Kind::special) output_.push_special(BusOp::halt, begin_);
      return;
    }
    if (kind_ == Kind::interrupt_acknowledge) {
      output_.push_acknowledge(begin_, static_cast<std::uint8_t>(data_value_));
      return;
    }
    if (!wide_) {
      output_.push(lanes_transaction(kind_, place_, 1, data_value_, begin_));
      return;
    }
    const unsigned lanes = (place_.offset_in(2) == 0 ? 1u : 0u) | (high_lane_ ? 2u : 0u);
    if (lanes == 0)
      throw FormatError(name(), begin_,
                        "expected BHE or an even address, found a cycle that moves no byte (check "
                        "AD0 and BHE in the channel map)");
    output_.push(lanes_transaction(kind_, place_.begin_of(2), lanes, data_value_, begin_));
  }

  BusOutput output_;
  bool wide_;
  bool has_sso_ = false;
  PinGather address_, data_, control_, enable_;
  bool open_ = false, strobed_ = false, high_lane_ = false, io_ = false;
  unsigned clocks_without_strobe_ = 0;  ///< after ALE
  Kind kind_ = Kind::none, status_kind_ = Kind::none;
  std::uint64_t begin_ = 0, data_value_ = 0;
  PhysAddr place_;
};

std::vector<PinDescription> min_mode_pins(int data_lines) {
  std::vector<PinDescription> pins;
  add_pins(pins, "AD", 0, data_lines - 1, 0);
  for (PinDescription& pin : pins) pin.required = true;
  add_pins(pins, "A", data_lines, 19, data_lines, "AD");
  for (const char* name : {"CLK", "ALE", "RD", "WR", "INTA"})
    pins.push_back({name, "", true, "", -1});
  return pins;
}

}  // namespace

const std::vector<PinDescription>& pins_8088_min() {
  static const std::vector<PinDescription> kPins = [] {
    auto pins = min_mode_pins(8);
    pins.push_back({"IOM", "", true, "", -1});
    const std::string cost = "only S3 and S4 distinguish code fetches from data";
    pins.push_back({"DTR", "", false, cost, -1});
    pins.push_back({"SSO", "SS0", false, cost, -1});
    return pins;
  }();
  return kPins;
}

const std::vector<PinDescription>& pins_8086_min() {
  static const std::vector<PinDescription> kPins = [] {
    auto pins = min_mode_pins(16);
    pins.push_back({"MIO", "", true, "", -1});
    pins.push_back({"BHE", "BHES7", true, "", -1});
    pins.push_back({"DTR", "", false, "nothing: the strobes say as much", -1});
    return pins;
  }();
  return kPins;
}

std::unique_ptr<BusDecoder> make_8086_min(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder8086Min>(samples, pins);
}

}  // namespace citcat
