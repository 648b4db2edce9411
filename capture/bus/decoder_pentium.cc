// The bus of the Pentium: pipelined cycles and bursts of 64 bits.

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <optional>

#include "capture/bus/burst_bus.h"
#include "capture/bus/clocked_decoder.h"
#include "capture/bus/decoder_486.h"
#include "capture/bus/hex.h"
#include "capture/bus/pulse_counter.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Kind = CycleKind;

constexpr std::uint32_t kLineBytesPentium = 32;
constexpr unsigned kItemBytesPentium = 8;
constexpr unsigned kItemsPentium = kLineBytesPentium / kItemBytesPentium;
// NA# lets one more cycle begin before the last one has ended (Pentium data sheet, "Pipelined
// cycles").
constexpr std::size_t kOutstanding = 2;
// A branch trace message, by its only active byte enable (AMD-K5 TRM, table 5-23).
constexpr unsigned kBranchTrace = 1u << 5;

/// Where a branch trace message has its target.
enum class BranchTrace : std::uint8_t {
  /// A31 to A3 and BT2 to BT0 are its linear address (Pentium Processor Family Developer's Manual,
  /// vol. 1, "Branch trace special cycle"; from memory of the manual, to be corrected here).
  address,
  /// Two cycles: A31 is 0 with the source, 1 with the target; D31 to D0 are EIP, A19 to A4 the CS
  /// selector, A30 and A29 the mode: 0 real, 2 protected, 3 virtual-8086 (AMD-K5 TRM, table 5-24).
  offset_and_selector,
};
struct BranchTraceRow {
  std::string_view bus;
  BranchTrace layout;
};
constexpr BranchTraceRow kBranchTraces[] = {
    {"pentium", BranchTrace::address},
    {"k5", BranchTrace::offset_and_selector},
};
constexpr const char* kTargetPins[] = {"BT0", "BT1", "BT2"};

/// Control pins in the order they are gathered; BE0 to BE7 follow.
enum ControlPentium : unsigned {
  kWrPentium,
  kDcPentium,
  kMioPentium,
  kAdsPentium,
  kBrdyPentium,
  kCachePentium,
  kKenPentium,
  kBoffPentium,
  kHitmPentium,
  kNaPentium,
  kBe0Pentium
};

class DecoderPentium final : public ClockedDecoder {
 public:
  DecoderPentium(const SampleInfo& samples, const PinSet& pins)
      : ClockedDecoder(samples, pins, "CLK"),
        output_(samples.name),
        address_(pins.gather("A", 3, 31)),
        data_(pins.gather("D", 0, 63)),
        control_(pins.gather({"WR", "DC", "MIO", "ADS", "BRDY", "CACHE", "KEN", "BOFF", "HITM",
                              "NA", "BE0", "BE1", "BE2", "BE3", "BE4", "BE5", "BE6", "BE7"})) {
    absent_ = pins.absent(
        {{"KEN", kKenPentium}, {"BOFF", kBoffPentium}, {"HITM", kHitmPentium}, {"NA", kNaPentium}});
    // Without KEN# a read that asks for a line is believed to get it.
    has_ken_ = pins.has("KEN");
    for (const BranchTraceRow& row : kBranchTraces)
      if (row.bus == pins.bus.id) branch_trace_ = row.layout;
    const bool low_bits = std::all_of(std::begin(kTargetPins), std::end(kTargetPins),
                                      [&](const char* pin) { return pins.has(pin); });
    // The pins of an AMD-K5 are others.
    if (branch_trace_ == BranchTrace::address) pulses_ = PulseCounter(pins);
    if (low_bits) target_low_ = pins.gather({std::begin(kTargetPins), std::end(kTargetPins)});
  }

  bool take(BusTransaction& out) override { return output_.take(out); }
  CountUnit counts() const override { return pulses_.unit(); }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> lines;
    const auto count = [&](std::uint64_t n, const char* text) {
      if (n != 0) lines.push_back(std::to_string(n) + text);
    };
    count(backed_off_, " bus cycles were backed off (BOFF#) and run again from their beginning");
    if (!target_low_ && branch_trace_ == BranchTrace::address)
      count(branch_traces_, " branch targets are known to 8 bytes: BT0 to BT2 are not probed");
    count(pulses_.uncertain(),
          " interrupts have no count: an instruction or branch was reported completed within their "
          "acknowledge cycles");
    count(left_out_, " special cycles are left out (stop grant, flush acknowledge)");
    return lines;
  }

 protected:
  void clock(const Period& period) override {
    const std::uint64_t control = control_(period.last) | absent_;
    const auto low = [&](unsigned pin) { return ((control >> pin) & 1) == 0; };
    const std::uint64_t counted = pulses_.value();
    if (pulses_.counts()) pulses_.clock(period.last);
    if (low(kBoffPentium)) {
      // All outstanding cycles are run again in their entirety (Pentium data sheet, "BOFF#").
      backed_off_ += cycles_.size();
      cycles_.clear();
      return;
    }
    if (!cycles_.empty()) {
      Cycle& current = cycles_.front();
      // KEN# is taken with the first BRDY# or with NA#, whichever comes first.
      if (!current.cache_known && (low(kBrdyPentium) || low(kNaPentium)))
        settle_cache(current, low(kKenPentium));
      if (low(kBrdyPentium)) transfer(current, period);
    }
    if (low(kAdsPentium)) {
      begin(period, control);
      cycles_.back().counted = counted;
    }
  }

  void end() override {}

 private:
  struct Cycle {
    Kind kind = Kind::none;
    std::uint64_t clock = 0;
    std::uint64_t counted = 0;  ///< pulses before the clock of ADS#
    PhysAddr start;
    unsigned lanes = 0;
    bool asks_for_line = false;  ///< CACHE# low
    bool cache_known = false, burst = false, snoop = false;
    unsigned items = 0;
    std::array<std::uint8_t, kLineBytesPentium> data{};
  };
  static constexpr std::uint32_t kTargetMessage = 1U << 31;

  void begin(const Period& period, std::uint64_t control) {
    if (cycles_.size() >= kOutstanding)
      throw FormatError(
          name(), period.begin,
          "expected BRDY# to end one of two outstanding bus cycles before ADS# begins "
          "a third, found none (check ADS#, BRDY# and CLK in the channel map)");
    Cycle cycle;
    cycle.kind = kDefinition486[control & 7];
    cycle.clock = period.begin;
    cycle.start = PhysAddr{static_cast<std::uint32_t>(address_(period.last) << 3)};
    cycle.lanes = static_cast<unsigned>(~control >> kBe0Pentium) & 0xff;
    cycle.asks_for_line = ((control >> kCachePentium) & 1) == 0 && is_memory(cycle.kind);
    cycle.snoop = ((control >> kHitmPentium) & 1) == 0;
    const bool moves = cycle.kind != Kind::special && cycle.kind != Kind::interrupt_acknowledge;
    if (cycle.kind == Kind::none || (moves && !cycle.asks_for_line && !is_one_run(cycle.lanes)))
      throw FormatError(name(), period.begin,
                        "expected a bus cycle of neighbouring bytes, found definition " +
                            hex(control & 7, 1) + " with byte enables " + hex(cycle.lanes, 2) +
                            " (check M/IO#, D/C#, W/R# and BE# in the channel map)");
    cycles_.push_back(cycle);
  }

  void settle_cache(Cycle& cycle, bool ken) {
    cycle.cache_known = true;
    // A write with CACHE# is the write-back of a line and needs nobody's leave.
    cycle.burst = cycle.asks_for_line && (ken || !has_ken_ || is_write(cycle.kind));
  }

  void transfer(Cycle& cycle, const Period& period) {
    const std::uint64_t data = data_(period.last);
    if (cycle.burst) {
      const PhysAddr item = burst_address(cycle.start, cycle.items, kItemBytesPentium);
      for (unsigned lane = 0; lane < kItemBytesPentium; ++lane)
        cycle.data[item.offset_in(kLineBytesPentium) + lane] =
            static_cast<std::uint8_t>(data >> (8 * lane));
      if (++cycle.items == kItemsPentium) finish_line(cycle);
      return;
    }
    if (cycle.kind == Kind::special && cycle.lanes == kBranchTrace) {
      finish_branch_trace(cycle, period);
    } else {
      finish_single(cycle, data);
    }
    cycles_.pop_front();
  }

  void finish_line(const Cycle& cycle) {
    BusTransaction line;
    line.op = op_of(cycle.kind);
    line.clock = cycle.clock;
    line.flags = kClockKnown | kLine;
    if (is_write(cycle.kind)) line.flags |= kWriteBack;
    if (is_write(cycle.kind) && cycle.snoop) line.flags |= kSnoop;
    line.address = cycle.start.begin_of(kLineBytesPentium);
    line.size = kLineBytesPentium;
    line.data = cycle.data;
    output_.push(line);
    cycles_.pop_front();
  }

  /// The target of a branch that was taken; nothing for the message of its source.
  void finish_branch_trace(const Cycle& cycle, const Period& period) {
    BusTransaction start;
    start.op = BusOp::instruction_start;
    start.clock = cycle.clock;
    start.flags = kClockKnown | kBranchTarget;
    start.address = cycle.start;
    start.size = 1;
    if (branch_trace_ == BranchTrace::address) {
      if (target_low_) {
        start.address.value |= static_cast<std::uint32_t>((*target_low_)(period.last));
      } else {
        start.size = kItemBytesPentium;
      }
    } else if ((cycle.start.value & kTargetMessage) == 0) {
      return;
    } else {
      constexpr std::uint32_t kProtected = 2;
      const std::uint32_t selector = cycle.start.low32() >> 4 & 0xffff;
      const bool paragraphs = (cycle.start.value >> 29 & 3) != kProtected;
      start.address = PhysAddr{static_cast<std::uint32_t>(data_(period.last))};
      if (paragraphs) start.address = start.address.plus32(selector << 4);
    }
    ++branch_traces_;
    output_.push(start);
  }

  void finish_single(const Cycle& cycle, std::uint64_t data) {
    if (cycle.kind == Kind::interrupt_acknowledge) {
      acknowledge(cycle, static_cast<std::uint8_t>(data));
    } else if (cycle.kind == Kind::special) {
      if (const auto special = special_cycle(cycle.lanes, cycle.start)) {
        output_.push_special(special->op, cycle.clock, special->detail);
      } else {
        ++left_out_;
      }
    } else {
      // A read that asked for a line and got one item got all of it.
      const unsigned lanes = cycle.asks_for_line && !is_one_run(cycle.lanes) ? 0xff : cycle.lanes;
      BusTransaction single = lanes_transaction(cycle.kind, cycle.start, lanes, data, cycle.clock);
      if (is_memory(cycle.kind) && !is_write(cycle.kind)) single.flags |= kUncacheable;
      output_.push(single);
    }
  }

  /// No instruction completes between the two cycles of an interrupt's acknowledge, so that what is
  /// counted before the first ADS# and after the second BRDY# must be the same. Where it is not,
  /// the pins were late, and the count is not known.
  void acknowledge(const Cycle& cycle, std::uint8_t data) {
    if (!output_.acknowledging()) before_acknowledge_ = cycle.counted;
    const bool pair = output_.acknowledging();
    std::optional<std::uint64_t> counted;
    if (pair && pulses_.counts()) counted = pulses_.between(before_acknowledge_);
    output_.push_acknowledge(cycle.clock, data, counted);
  }

  BusOutput output_;
  PulseCounter pulses_;
  std::uint64_t before_acknowledge_ = 0;
  PinGather address_, data_, control_;
  std::uint64_t absent_ = 0;
  bool has_ken_ = true;
  BranchTrace branch_trace_ = BranchTrace::address;
  std::optional<PinGather> target_low_;
  std::deque<Cycle> cycles_;
  std::uint64_t backed_off_ = 0, branch_traces_ = 0, left_out_ = 0;
};

}  // namespace

const std::vector<PinDescription>& pins_pentium() {
  static const std::vector<PinDescription> kPins = [] {
    std::vector<PinDescription> pins;
    add_pins(pins, "A", 3, 31, 3);
    const auto require = [&](const std::string& name) { pins.push_back({name, "", true, "", -1}); };
    for (int i = 0; i < 64; ++i) require("D" + std::to_string(i));
    for (int i = 0; i < 8; ++i) require("BE" + std::to_string(i));
    for (const char* name : {"CLK", "ADS", "MIO", "DC", "WR", "BRDY", "CACHE"}) require(name);
    const auto optional = [&](const char* name, const char* cost) {
      pins.push_back({name, "", false, cost, -1});
    };
    optional("KEN", "every read that asks for a line is believed to get it");
    optional("NA", "KEN# of pipelined cycles is looked at too late");
    optional("BOFF", "cycles that are backed off confuse the following ones");
    optional("HITM", "write-backs by snoops cannot be distinguished from others");
    for (const char* name : kTargetPins)
      optional(name, "branch trace messages give their target only to 8 bytes");
    for (const char* name : PulseCounter::kPins)
      optional(name, "nothing counts instructions or branches");
    return pins;
  }();
  return kPins;
}

std::unique_ptr<BusDecoder> make_pentium(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<DecoderPentium>(samples, pins);
}

}  // namespace citcat
