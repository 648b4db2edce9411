// Waveforms of the i486 (Intel i486 data sheet, "Bus functional description").

#include "tests/unit/capture/bus/bus_generators.h"

namespace citcat::test {
namespace {

constexpr unsigned kAllBytes = 15;

class Generator486 {
 public:
  explicit Generator486(Random& random) : random_(random) {
    std::vector<std::string> names;
    add_names(names, "A", 2, 31);
    add_names(names, "D", 0, 31);
    add_names(names, "BE", 0, 3);
    for (const char* name : {"W/R#", "D/C#", "M/IO#", "CLK", "ADS#", "RDY#", "BRDY#", "BLAST#",
                             "KEN#", "BS8#", "BS16#", "BOFF#"})
      names.push_back(name);
    wave_ = std::make_unique<Wave>(names, "CLK", true, random);
    wave_->float_in_first_half(kData, 32);
    ads_ = wave_->channel("ADS#");
    rdy_ = wave_->channel("RDY#");
    brdy_ = wave_->channel("BRDY#");
    blast_ = wave_->channel("BLAST#");
    ken_ = wave_->channel("KEN#");
    bs8_ = wave_->channel("BS8#");
    bs16_ = wave_->channel("BS16#");
    boff_ = wave_->channel("BOFF#");
  }

  std::unique_ptr<Wave> run(const Traffic& traffic) {
    inputs_idle();
    wave_->set(ads_, true);
    wave_->tick();
    for (const BusTransaction& t : traffic) {
      for (unsigned idle = draw(random_, 3); idle != 0; --idle) wave_->tick();
      if (t.has(kLine)) {
        fill_line(t);
      } else if (t.op == BusOp::interrupt_acknowledge) {
        cycle(t.op, 4, 1, random_());
        cycle(t.op, 0, 1, (random_() & ~std::uint64_t{0xff}) | t.data[0]);
      } else if (t.op == BusOp::halt || t.op == BusOp::shutdown || t.op == BusOp::flush) {
        const unsigned enable = t.op == BusOp::halt       ? 4
                                : t.op == BusOp::shutdown ? 1
                                : t.data[0] == 1          ? 2
                                                          : 8;
        cycle(t.op, 0, enable, random_());
      } else {
        single(t);
      }
    }
    wave_->tick();
    return std::move(wave_);
  }

 private:
  static constexpr std::size_t kData = 30, kEnables = 62, kDefinition = 66;

  void inputs_idle() {
    for (const std::size_t pin : {rdy_, brdy_, ken_, bs8_, bs16_, boff_}) wave_->set(pin, true);
    wave_->set(blast_, (random_() & 1) != 0);
  }

  /// T1.
  void address_phase(BusOp op, std::uint32_t address, unsigned enables) {
    wave_->set(0, 30, address >> 2);
    wave_->set(kEnables, 4, ~enables);
    wave_->set(kDefinition, 3, definition_486(op));
    wave_->set(ads_, false);
    inputs_idle();
  }

  /// Ends the clock before the next one; `ken` is the level of KEN# in it.
  void tick(bool ken) {
    wave_->set(ken_, ken);
    wave_->tick();
    wave_->set(ads_, true);
    inputs_idle();
    wave_->set(kData, 32, random_());
  }

  /// Now and then another master throws the processor off the bus: true when it did.
  bool backed_off() {
    if (draw(random_, 12) != 0) return false;
    wave_->set(boff_, false);
    // A ready in the same clock does not count.
    wave_->set(brdy_, (random_() & 1) != 0);
    for (unsigned n = 1 + draw(random_, 3); n != 0; --n) {
      wave_->tick();
      wave_->set(brdy_, true);
    }
    inputs_idle();
    return true;
  }

  /// A cycle with one ready, run again as often as it is backed off.
  void cycle(BusOp op, std::uint32_t address, unsigned enables, std::uint64_t data) {
    for (;;) {
      address_phase(op, address, enables);
      tick(true);
      bool again = false;
      for (unsigned waits = draw(random_, 3); waits != 0 && !again; --waits) {
        again = backed_off();
        if (!again) tick(true);
      }
      if (!again) break;
    }
    wave_->set(kData, 32, data);
    if (draw(random_, 2) == 0) {
      wave_->set(rdy_, false);
    } else {
      wave_->set(brdy_, false);
      wave_->set(blast_, false);
    }
    tick(true);
  }

  std::uint64_t data_of(const BusTransaction& t) {
    std::uint64_t value = random_();
    for (unsigned i = 0; i < t.size; ++i) {
      const unsigned shift = 8 * ((t.address.low32() + i) & 3);
      value = (value & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{t.data[i]} << shift;
    }
    return value;
  }

  void single(const BusTransaction& t) {
    const unsigned lanes = ((1u << t.size) - 1) << (t.address.low32() & 3);
    cycle(t.op, t.address.low32() & ~3u, lanes, data_of(t));
  }

  /// A fill: bursts in interleaved order, broken by RDY#, by back-offs and by narrow devices.
  void fill_line(const BusTransaction& t) {
    const std::uint32_t first = draw(random_, 4) * 4;
    const unsigned width = draw(random_, 4) == 0 ? 1 + draw(random_, 2) : 4;  // bytes a ready
    unsigned item = 0, done = 0;  // bytes of the item done
    bool begun = false;
    while (item < 4) {
      const std::uint32_t address = (t.address.low32() + first) ^ (item * 4);
      if (!begun) {
        // What remains of the item is enabled; in a fill nobody looks.
        address_phase(t.op, address, kAllBytes & (kAllBytes << done));
        begun = true;
        tick(false);
      }
      if (draw(random_, 3) == 0) {
        tick(false);
        continue;
      }
      if (backed_off()) {
        begun = false;
        continue;
      }
      const std::size_t offset = address & 15;
      std::uint64_t data = random_();
      for (unsigned i = 0; i < width; ++i) {
        const unsigned lane = done + i;
        data = (data & ~(std::uint64_t{0xff} << (8 * lane))) | std::uint64_t{t.data[offset + lane]}
                                                                   << (8 * lane);
      }
      wave_->set(kData, 32, data);
      wave_->set(bs8_, width != 1);
      wave_->set(bs16_, width != 2);
      done += width;
      if (done == 4) {
        done = 0;
        ++item;
      }
      const bool broken = draw(random_, 4) == 0;
      wave_->set(broken ? rdy_ : brdy_, false);
      wave_->set(blast_, item != 4);
      if (broken) begun = false;
      tick(false);
    }
  }

  Random& random_;
  std::unique_ptr<Wave> wave_;
  std::size_t ads_ = 0, rdy_ = 0, brdy_ = 0, blast_ = 0, ken_ = 0, bs8_ = 0, bs16_ = 0, boff_ = 0;
};

}  // namespace

std::unique_ptr<Wave> draw_486(const Traffic& traffic, Random& random) {
  return Generator486(random).run(traffic);
}

}  // namespace citcat::test
