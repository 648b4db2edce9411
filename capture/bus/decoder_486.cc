#include "capture/bus/decoder_486.h"

#include <array>
#include <optional>

#include "capture/bus/burst_bus.h"
#include "capture/bus/clocked_decoder.h"
#include "capture/bus/hex.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Kind = CycleKind;

constexpr std::uint32_t kLineBytes = 16;
constexpr unsigned kItemBytes = 4;
constexpr unsigned kItems = kLineBytes / kItemBytes;
constexpr unsigned kAllLanes = 15;

/// Control pins in the order they are gathered.
enum Control486 : unsigned {
  kWr,
  kDc,
  kMio,
  kBe0,
  kBe1,
  kBe2,
  kBe3,
  kAds,
  kRdy,
  kBrdy,
  kBlast,
  kKen,
  kBs8,
  kBs16,
  kBoff
};

class Decoder486 final : public ClockedDecoder {
 public:
  Decoder486(const SampleInfo& samples, const PinSet& pins)
      : ClockedDecoder(samples, pins, "CLK"),
        output_(samples.name),
        address_(pins.gather("A", 2, 31)),
        data_(pins.gather("D", 0, 31)),
        control_(pins.gather({"WR", "DC", "MIO", "BE0", "BE1", "BE2", "BE3", "ADS", "RDY", "BRDY",
                              "BLAST", "KEN", "BS8", "BS16", "BOFF"})) {
    absent_ = pins.absent({{"RDY", kRdy},
                           {"BRDY", kBrdy},
                           {"KEN", kKen},
                           {"BS8", kBs8},
                           {"BS16", kBs16},
                           {"BOFF", kBoff}});
    // Without BLAST# every ready ends a cycle.
    has_blast_ = pins.has("BLAST");
  }

  bool take(BusTransaction& out) override { return output_.take(out); }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> lines;
    if (backed_off_ != 0)
      lines.push_back(
          std::to_string(backed_off_) +
          " bus cycles were backed off (BOFF#) and run again: their first data are not used");
    if (left_out_ != 0)
      lines.push_back(std::to_string(left_out_) + " special cycles are left out (stop grant)");
    return lines;
  }

 protected:
  void clock(const Period& period) override {
    const std::uint64_t control = control_(period.last) | absent_;
    const auto low = [&](unsigned pin) { return ((control >> pin) & 1) == 0; };
    const bool cacheable = cacheable_;
    // KEN# counts in the clock before the first ready.
    cacheable_ = low(kKen);
    if (low(kBoff)) {
      back_off();
      return;
    }
    if (cycle_ && (low(kRdy) || low(kBrdy))) {
      if (cycle_->items == 0 && cacheable && cycle_->fillable) start_fill();
      transfer(period, control);
      const bool last = low(kRdy) || !has_blast_ || low(kBlast);
      if (cycle_->items++, last) cycle_.reset();
    }
    if (low(kAds)) begin(period, control);
  }

  void end() override { release_fill(); }

 private:
  struct Cycle {
    Kind kind = Kind::none;
    std::uint64_t clock = 0;
    PhysAddr word;           ///< of the item being transferred
    PhysAddr start;          ///< of the first item
    unsigned index = 0;      ///< of that item in the burst
    unsigned remaining = 0;  ///< its bytes still to come
    unsigned items = 0;      ///< ready pulses so far
    bool fillable = false;   ///< a read of memory
  };
  /// A line being filled, by one burst or by several cycles.
  struct Fill {
    Kind kind = Kind::none;
    std::uint64_t clock = 0;
    PhysAddr start;
    unsigned index = 0;      ///< item being transferred
    unsigned remaining = 0;  ///< its bytes still to come
    std::array<std::uint8_t, kLineBytes> data{};
  };

  void begin(const Period& period, std::uint64_t control) {
    if (cycle_)
      throw FormatError(
          name(), period.begin,
          "expected RDY#, or BRDY# with BLAST#, to end a bus cycle before ADS# begins "
          "the next one, found neither (check them and CLK in the channel map)");
    Cycle cycle;
    cycle.kind = kDefinition486[control & 7];
    cycle.clock = period.begin;
    cycle.word = cycle.start = PhysAddr{static_cast<std::uint32_t>(address_(period.last) << 2)};
    cycle.remaining = static_cast<unsigned>(~control >> kBe0) & kAllLanes;
    cycle.fillable = cycle.kind == Kind::code_read || cycle.kind == Kind::data_read;
    const bool moves = cycle.kind != Kind::special && cycle.kind != Kind::interrupt_acknowledge;
    if (cycle.kind == Kind::none || (moves && !is_one_run(cycle.remaining)))
      throw FormatError(name(), period.begin,
                        "expected a bus cycle of neighbouring bytes, found definition " +
                            hex(control & 7, 1) + " with byte enables " + hex(cycle.remaining, 1) +
                            " (check M/IO#, D/C#, W/R# and BE# in the channel map)");
    // A fill that was cut goes on with the item it had come to, or never.
    if (fill_ && (!cycle.fillable || cycle.kind != fill_->kind ||
                  cycle.word != burst_address(fill_->start, fill_->index, kItemBytes)))
      release_fill();
    cycle_ = cycle;
  }

  void start_fill() {
    if (fill_) return;
    fill_ = Fill{};
    fill_->kind = cycle_->kind;
    fill_->clock = cycle_->clock;
    fill_->start = cycle_->start;
    fill_->remaining = kAllLanes;  // byte enables do not count in a fill
  }

  /// The bytes that one ready moves: a narrow device takes the lowest ones that are left.
  static unsigned moved_lanes(unsigned remaining, std::uint64_t control) {
    if (((control >> kBs8) & 1) == 0) return remaining & (~remaining + 1);
    if (((control >> kBs16) & 1) == 0) return (remaining & 3) != 0 ? remaining & 3 : remaining & 12;
    return remaining;
  }

  void transfer(const Period& period, std::uint64_t control) {
    const std::uint64_t data = data_(period.last);
    switch (cycle_->kind) {
      case Kind::interrupt_acknowledge:
        output_.push_acknowledge(cycle_->clock, static_cast<std::uint8_t>(data));
        return;
      case Kind::special:
        if (const auto special = special_cycle(cycle_->remaining, cycle_->word)) {
          output_.push_special(special->op, cycle_->clock, special->detail);
        } else {
          ++left_out_;
        }
        return;
      default:
        break;
    }
    if (fill_) {
      transfer_fill(data, control);
      return;
    }
    if (cycle_->remaining == 0) next_item();
    const unsigned lanes = moved_lanes(cycle_->remaining, control);
    BusTransaction part = lanes_transaction(cycle_->kind, cycle_->word, lanes, data, cycle_->clock);
    if (is_memory(cycle_->kind) && !is_write(cycle_->kind)) part.flags |= kUncacheable;
    output_.push(part);
    cycle_->remaining &= ~lanes;
  }

  /// A burst outside a fill goes on with whole items.
  void next_item() {
    cycle_->word = burst_address(cycle_->start, ++cycle_->index % kItems, kItemBytes);
    cycle_->remaining = kAllLanes;
  }

  void transfer_fill(std::uint64_t data, std::uint64_t control) {
    const unsigned lanes = moved_lanes(fill_->remaining, control);
    const PhysAddr word = burst_address(fill_->start, fill_->index, kItemBytes);
    for (unsigned lane = 0; lane < kItemBytes; ++lane)
      if (((lanes >> lane) & 1) != 0)
        fill_->data[word.offset_in(kLineBytes) + lane] =
            static_cast<std::uint8_t>(data >> (8 * lane));
    fill_->remaining &= ~lanes;
    if (fill_->remaining != 0) return;
    fill_->remaining = kAllLanes;
    if (++fill_->index == kItems) release_fill();
  }

  /// A whole line is one transaction; of a fill that never ended, each item is one.
  void release_fill() {
    if (!fill_) return;
    const PhysAddr line = fill_->start.begin_of(kLineBytes);
    BusTransaction transaction;
    transaction.op = op_of(fill_->kind);
    transaction.clock = fill_->clock;
    transaction.flags = kClockKnown;
    if (fill_->index == kItems) {
      transaction.flags |= kLine;
      transaction.address = line;
      transaction.size = kLineBytes;
      std::copy(fill_->data.begin(), fill_->data.end(), transaction.data.begin());
      output_.push(transaction);
    } else {
      transaction.flags |= kUncacheable;
      transaction.size = kItemBytes;
      for (unsigned i = 0; i < fill_->index; ++i) {
        const PhysAddr word = burst_address(fill_->start, i, kItemBytes);
        transaction.address = word;
        for (unsigned lane = 0; lane < kItemBytes; ++lane)
          transaction.data[lane] = fill_->data[word.offset_in(kLineBytes) + lane];
        output_.push(transaction);
      }
    }
    fill_.reset();
  }

  /// The processor runs the cycle again afterwards, from the item it had come to (i486 Hardware
  /// Reference Manual, 4.4.4): what ended before stays.
  void back_off() {
    if (cycle_) ++backed_off_;
    cycle_.reset();
  }

  BusOutput output_;
  PinGather address_, data_, control_;
  std::uint64_t absent_ = 0;
  bool has_blast_ = true;
  bool cacheable_ = false;
  std::optional<Cycle> cycle_;
  std::optional<Fill> fill_;
  std::uint64_t backed_off_ = 0, left_out_ = 0;
};

}  // namespace

const std::vector<PinDescription>& pins_486() {
  static const std::vector<PinDescription> kPins = [] {
    std::vector<PinDescription> pins;
    add_pins(pins, "A", 2, 31, 2);
    const auto require = [&](const std::string& name, const char* aliases = "") {
      pins.push_back({name, aliases, true, "", -1});
    };
    for (int i = 0; i < 32; ++i) require("D" + std::to_string(i));
    for (int i = 0; i < 4; ++i) require("BE" + std::to_string(i));
    for (const char* name : {"CLK", "ADS", "MIO", "DC", "WR"}) require(name);
    const auto optional = [&](const char* name, const char* cost) {
      pins.push_back({name, "", false, cost, -1});
    };
    require("BRDY");
    optional("RDY",
             "the ends of cycles that end with RDY# are not seen, unless the board has BRDY# only");
    optional("BLAST", "bursts are taken for single transfers");
    optional("KEN", "line fills cannot be distinguished from other reads");
    optional("BS8", "8-bit devices are taken for 32-bit ones");
    optional("BS16", "16-bit devices are taken for 32-bit ones");
    optional("BOFF", "cycles that are backed off show twice");
    return pins;
  }();
  return kPins;
}

std::unique_ptr<BusDecoder> make_486(const SampleInfo& samples, const PinSet& pins) {
  return std::make_unique<Decoder486>(samples, pins);
}

}  // namespace citcat
