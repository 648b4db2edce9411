#include "capture/bus/decoder_8086.h"

#include "capture/bus/clocked_decoder.h"
#include "capture/bus/cycle_definitions.h"
#include "capture/bus/execution_tracker.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr unsigned kPassive = 7;

/// The status as a bus operation; a special cycle is a halt, the only one these processors have.
BusOp op_of_status(unsigned status) {
  const CycleKind kind = kStatus8086[status];
  return kind == CycleKind::special ? BusOp::halt : op_of(kind);
}

// T1 and the clock that carries the data; the clocks between are T2 and wait states.
constexpr std::uint32_t kClocksBeforeData = 2;

void add_control_pins(std::vector<PinDescription>& pins) {
  pins.push_back({"S0", "", true, "", -1});
  pins.push_back({"S1", "", true, "", -1});
  pins.push_back({"S2", "", true, "", -1});
  pins.push_back({"CLK", "CLOCK CPUCLK", true, "", -1});
  const std::string positions =
      "no instruction stream and no positions: interrupts are placed by bus order alone";
  pins.push_back({"QS0", "", false, positions, -1});
  pins.push_back({"QS1", "", false, positions, -1});
  pins.push_back({"INTR", "INT IRQ", false, "the moment of an interrupt request is not shown", -1});
}

class Decoder8086Max final : public ClockedDecoder {
 public:
  Decoder8086Max(const SampleInfo& samples, const PinSet& pins)
      : ClockedDecoder(samples, pins, "CLK"),
        wide_(pins.bus.bus_bytes == 2),
        has_queue_(pins.has("QS0") && pins.has("QS1")),
        tracker_({samples.name, wide_ ? 6u : 4u, pins.assignment.address_mask, has_queue_,
                  wide_ ? "" : kProposeMap,
                  is_known(pins.assignment.cpu) ? pins.assignment.cpu : pins.bus.cpu}) {
    const int data_lines = wide_ ? 16 : 8;
    std::vector<std::string> address, data, control{"S0", "S1", "S2", "QS0", "QS1", "INTR"};
    for (int i = 0; i < 20; ++i)
      address.push_back((i < data_lines ? "AD" : "A") + std::to_string(i));
    data.assign(address.begin(), address.begin() + data_lines);
    if (wide_) control.push_back("BHE");
    address_ = pins.gather(address);
    data_ = pins.gather(data);
    control_ = pins.gather(control);
  }

  bool take(BusTransaction& out) override { return tracker_.take(out); }
  bool has_positions() const override { return has_queue_; }
  std::vector<std::string> warnings() const override { return tracker_.warnings(); }

 protected:
  void clock(const Period& period) override {
    const std::uint64_t control = control_(period.first);
    if (control == nothing_new_) {
      ++clocks_;
    } else {
      change(control, period);
    }
  }

  void end() override { tracker_.finish(); }

 private:
  static constexpr std::uint64_t kSomethingNew = ~std::uint64_t{0};

  void change(std::uint64_t control, const Period& period) {
    const auto status = static_cast<unsigned>(control & 7);
    if (status == kPassive) {
      if (open_) end_cycle(period);
    } else if (status_ == kPassive) {
      begin_cycle(status, control, period);
    } else if (open_) {
      if (status != status_)
        throw FormatError(name(), period.begin,
                          "expected S2-S0 to stay " + std::to_string(status_) +
                              " within a bus cycle, found " + std::to_string(status) +
                              " (check S0, S1, S2 and CLK in the channel map)" +
                              (wide_ ? "" : kProposeMap));
      ++clocks_;
    }
    const auto queue = static_cast<QueueStatus>((control >> 3) & 3);
    tracker_.queue_status(queue, period.end);
    status_ = status;
    nothing_new_ = queue == QueueStatus::none ? control : kSomethingNew;
  }

  void begin_cycle(unsigned status, std::uint64_t control, const Period& period) {
    cycle_ = {};
    cycle_.op = op_of_status(status);
    cycle_.begin = period.begin;
    cycle_.address = PhysAddr{static_cast<std::uint32_t>(address_(period.first))};
    cycle_.interrupt_request = ((control >> 5) & 1) != 0;
    const bool high_lane = wide_ && ((control >> 6) & 1) == 0;  // BHE is active low
    cycle_.lanes = lanes(high_lane, period);
    clocks_ = 1;
    open_ = true;
    BusTransaction transaction;
    transaction.op = cycle_.op;
    transaction.clock = cycle_.begin;
    transaction.flags = kClockKnown;
    if (cycle_.op != BusOp::interrupt_acknowledge && cycle_.op != BusOp::halt) {
      transaction.address = cycle_.address;
      transaction.size = cycle_.lanes == 3 ? 2 : 1;
    }
    tracker_.begin_cycle(transaction);
  }

  /// Which bytes of the bus take part (Intel 8086 data sheet, table "BHE and A0").
  std::uint8_t lanes(bool high_lane, const Period& period) const {
    if (!wide_) return 1;
    const bool low_lane = cycle_.address.offset_in(2) == 0;
    if (cycle_.op == BusOp::interrupt_acknowledge || cycle_.op == BusOp::halt) return 1;
    if (!low_lane && !high_lane)
      throw FormatError(name(), period.begin,
                        "expected BHE or an even address, found a cycle that moves no byte "
                        "(check AD0 and BHE in the channel map)");
    return static_cast<std::uint8_t>((low_lane ? 1 : 0) | (high_lane ? 2 : 0));
  }

  void end_cycle(const Period& period) {
    cycle_.data = data_(period.last);
    cycle_.end = period.begin;
    cycle_.wait_clocks = clocks_ < kClocksBeforeData ? 0 : clocks_ - kClocksBeforeData;
    const std::uint8_t low = static_cast<std::uint8_t>(cycle_.data);
    const std::uint8_t high = static_cast<std::uint8_t>(cycle_.data >> 8);
    const std::uint8_t bytes[2] = {cycle_.lanes == 2 ? high : low, high};
    tracker_.end_cycle(std::span<const std::uint8_t>(bytes).first(cycle_.lanes == 3 ? 2 : 1),
                       period.begin);
    if (on_cycle) on_cycle(cycle_);
    open_ = false;
  }

  bool wide_;
  bool has_queue_;
  PinGather address_, data_, control_;
  // Until the bus was seen passive, a cycle under way has lost its address.
  unsigned status_ = 0;
  bool open_ = false;
  std::uint32_t clocks_ = 0;  ///< of the cycle, while it is open
  /// Control lines that would do nothing but last a clock longer.
  std::uint64_t nothing_new_ = kSomethingNew;
  PinCycle cycle_;
  ExecutionTracker tracker_;
};

std::vector<PinDescription> max_mode_pins(int data_lines) {
  std::vector<PinDescription> pins;
  add_pins(pins, "AD", 0, data_lines - 1, 0);
  // Without a data line nothing can be replayed.
  for (PinDescription& pin : pins) pin.required = true;
  add_pins(pins, "A", data_lines, 19, data_lines, "AD");
  add_control_pins(pins);
  return pins;
}

}  // namespace

const std::vector<PinDescription>& pins_8088_max() {
  static const std::vector<PinDescription> kPins = max_mode_pins(8);
  return kPins;
}

const std::vector<PinDescription>& pins_8086_max() {
  static const std::vector<PinDescription> kPins = [] {
    std::vector<PinDescription> pins = max_mode_pins(16);
    pins.push_back({"BHE", "BHES7", true, "", -1});
    return pins;
  }();
  return kPins;
}

std::unique_ptr<BusDecoder> make_8086_max(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder8086Max>(samples, pins);
}

}  // namespace citcat
