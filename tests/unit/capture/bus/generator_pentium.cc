// Waveforms of the Pentium (Intel Pentium data sheet, "Bus functional description").

#include <algorithm>
#include <deque>

#include "tests/unit/capture/bus/bus_generators.h"

namespace citcat::test {
namespace {

struct PentiumCycle {
  BusTransaction t;
  std::uint32_t address = 0;
  unsigned enables = 0;
  bool line = false;          ///< CACHE# low
  bool refused = false;       ///< CACHE# low, KEN# high: one item comes
  std::uint32_t message = 0;  ///< on D31 to D0 of an AMD-K5's branch trace message
};

class GeneratorPentium {
 public:
  GeneratorPentium(Tracing tracing, Random& random) : random_(random), tracing_(tracing) {
    std::vector<std::string> names;
    add_names(names, "A", 3, 31);
    add_names(names, "D", 0, 63);
    add_names(names, "BE", 0, 7);
    for (const char* name : {"W/R#", "D/C#", "M/IO#", "CLK", "ADS#", "BRDY#", "CACHE#", "KEN#",
                             "NA#", "BOFF#", "HITM#"})
      names.push_back(name);
    if (tracing_ == Tracing::low_bits) add_names(names, "BT", 0, 3);
    if (tracing_ == Tracing::completions) names.insert(names.end(), {"IU", "IV"});
    if (tracing_ == Tracing::branches) names.push_back("IBT");
    wave_ = std::make_unique<Wave>(names, "CLK", true, random);
    wave_->float_in_first_half(kData, 64);
    ads_ = wave_->channel("ADS#");
    brdy_ = wave_->channel("BRDY#");
    cache_ = wave_->channel("CACHE#");
    ken_ = wave_->channel("KEN#");
    na_ = wave_->channel("NA#");
    boff_ = wave_->channel("BOFF#");
    hitm_ = wave_->channel("HITM#");
  }

  std::unique_ptr<Wave> run(const Traffic& traffic) {
    for (const BusTransaction& t : traffic) add_cycles(t);
    idle();
    wave_->tick();
    // `begun` cycles have had ADS#; up to two are outstanding.
    while (done_ < cycles_.size()) clock();
    idle();
    wave_->tick();
    return std::move(wave_);
  }

 private:
  static constexpr std::size_t kData = 29, kEnables = 93, kDefinition = 101, kTrace = 112;

  void add_cycles(const BusTransaction& t) {
    PentiumCycle cycle{t, t.address.low32() & ~7u, 0, false, false};
    if (t.op == BusOp::interrupt_acknowledge) {
      cycle.enables = 1;
      for (int i = 0; i < 2; ++i) {
        acknowledges_.push_back(cycles_.size());
        cycles_.push_back(cycle);
      }
      return;
    }
    if (t.op == BusOp::instruction_start) return add_branch_trace(cycle);
    if (t.op == BusOp::halt) cycle.enables = 4;
    if (t.op == BusOp::shutdown) cycle.enables = 1;
    if (t.op == BusOp::flush) cycle.enables = t.data[0] == 1 ? 2 : 8;
    if (t.has(kLine)) {
      cycle.line = true;
      cycle.enables = 0xff;
      // Fills begin anywhere in the line, write-backs at its beginning.
      cycle.address = t.address.low32() + (t.has(kWriteBack) ? 0 : 8 * draw(random_, 4));
    } else if (t.is_memory() || t.op == BusOp::io_read || t.op == BusOp::io_write) {
      cycle.enables = ((1u << t.size) - 1) << (t.address.low32() & 7);
      if (t.op == BusOp::code_read || t.op == BusOp::data_read) {
        cycle.refused = draw(random_, 2) == 0;
      }
    }
    cycles_.push_back(cycle);
  }

  /// A Pentium tells the target at once. An AMD-K5 tells the source first; its target is an offset
  /// in a segment of virtual-8086 or real mode where the linear address is below 1 MiB, else EIP.
  void add_branch_trace(PentiumCycle cycle) {
    cycle.enables = 1u << 5;
    if (tracing_ != Tracing::k5) {
      cycles_.push_back(cycle);
      return;
    }
    constexpr std::uint32_t kTarget = 1u << 31, k32Bit = 1u << 28;
    const std::uint32_t linear = cycle.t.address.low32();
    cycle.address = draw(random_, 0x10000) << 4;
    cycle.message = static_cast<std::uint32_t>(random_());
    cycles_.push_back(cycle);
    if (linear < 0x100000) {
      const std::uint32_t selector = draw(random_, (linear >> 4) + 1);
      const std::uint32_t mode = draw(random_, 2) == 0 ? 0u : 3u;
      cycle.address = kTarget | mode << 29 | selector << 4;
      cycle.message = linear - (selector << 4);
    } else {
      cycle.address = kTarget | 2u << 29 | k32Bit | draw(random_, 0x10000) << 4;
      cycle.message = linear;
    }
    cycles_.push_back(cycle);
  }

  void idle() {
    for (const std::size_t pin : {ads_, brdy_, na_, boff_, hitm_}) wave_->set(pin, true);
    wave_->set(ken_, (random_() & 1) != 0);
    wave_->set(cache_, (random_() & 1) != 0);
    wave_->set(kData, 64, random_());
    wave_->set(0, 29, random_());
    wave_->set(kEnables, 8, random_());
    if (tracing_ == Tracing::low_bits) wave_->set(kTrace, 4, random_());
    if (counts()) wave_->set(kTrace, pulse_pins(), 0);
  }

  bool counts() const { return tracing_ == Tracing::completions || tracing_ == Tracing::branches; }
  unsigned pulse_pins() const { return tracing_ == Tracing::completions ? 2 : 1; }
  /// Pulses that are due before the next cycle begins.
  std::uint64_t due() const {
    const std::size_t next = acknowledges_before(begun_);
    if (!counts() || next == acknowledges_.size()) return 0;
    const std::uint64_t counted = cycles_[acknowledges_[next]].t.position.instruction;
    return counted - std::min(pulses_, counted);
  }
  /// Some of the pulses that are due: one instruction in the U pipe, or one in each.
  void report() {
    const auto most = static_cast<unsigned>(std::min<std::uint64_t>(due(), pulse_pins()));
    const unsigned now = most == 0 ? 0 : draw(random_, most + 1);
    if (counts()) wave_->set(kTrace, pulse_pins(), (1u << now) - 1);
    pulses_ += now;
  }
  /// An interrupt is acknowledged when all before it has been completed and reported.
  bool must_wait() const {
    return begun_ < cycles_.size() && cycles_[begun_].t.op == BusOp::interrupt_acknowledge &&
           due() != 0;
  }

  void clock() {
    idle();
    const bool waits = must_wait();
    if (!acknowledging()) report();
    const std::size_t outstanding = begun_ - done_;
    if (outstanding != 0 && draw(random_, 20) == 0) {
      // Thrown off: everything outstanding begins again.
      wave_->set(boff_, false);
      wave_->tick();
      begun_ = done_;
      items_ = 0;
      next_allowed_ = false;
      ken_settled_ = false;
      return;
    }
    const bool may_begin = begun_ < cycles_.size() && !waits &&
                           (outstanding == 0 || (outstanding == 1 && next_allowed_));
    const bool begin = may_begin && draw(random_, 3) != 0;
    if (outstanding != 0) data_phase(outstanding);
    if (begin) address_phase(cycles_[begun_++]);
    wave_->tick();
    if (begin && outstanding != 0) next_allowed_ = false;
  }

  /// Between the two cycles of an acknowledge, or in one of them.
  bool acknowledging() const {
    const std::size_t begun = acknowledges_before(begun_);
    return begun != acknowledges_before(done_) || begun % 2 == 1;
  }

  void address_phase(const PentiumCycle& cycle) {
    wave_->set(0, 29, cycle.address >> 3);
    wave_->set(kEnables, 8, ~cycle.enables);
    wave_->set(kDefinition, 3, definition_486(cycle.t.op));
    wave_->set(ads_, false);
    wave_->set(cache_, !(cycle.line || cycle.refused));
    wave_->set(hitm_, !cycle.t.has(kSnoop));
  }

  void data_phase(std::size_t outstanding) {
    const PentiumCycle& cycle = cycles_[done_];
    const bool memory_line = cycle.line;
    const bool ready = draw(random_, 2) == 0;
    const bool next = outstanding == 1 && !next_allowed_ && draw(random_, 4) == 0;
    if (next) {
      wave_->set(na_, false);
      next_allowed_ = true;
    }
    if ((ready || next) && !ken_settled_) {
      wave_->set(ken_, !memory_line);
      ken_settled_ = true;
    }
    if (!ready) return;
    wave_->set(brdy_, false);
    wave_->set(kData, 64, data_of(cycle));
    const bool traces = cycle.t.op == BusOp::instruction_start;
    if (traces && tracing_ == Tracing::low_bits) wave_->set(kTrace, 3, cycle.t.address.value & 7);
    if (++items_ < (cycle.line ? 4u : 1u)) return;
    ++done_;
    items_ = 0;
    ken_settled_ = false;
    next_allowed_ = false;
  }

  std::uint64_t data_of(const PentiumCycle& cycle) {
    const BusTransaction& t = cycle.t;
    std::uint64_t value = random_();
    const auto put = [&](unsigned lane, std::uint8_t byte) {
      value = (value & ~(std::uint64_t{0xff} << (8 * lane))) | std::uint64_t{byte} << (8 * lane);
    };
    if (cycle.t.op == BusOp::instruction_start) {
      for (unsigned lane = 0; lane < 4; ++lane)
        put(lane, static_cast<std::uint8_t>(cycle.message >> (8 * lane)));
    } else if (cycle.line) {
      const std::uint32_t offset = (cycle.address ^ (8 * items_)) & 31;
      for (unsigned lane = 0; lane < 8; ++lane) put(lane, t.data[offset + lane]);
    } else if (t.op == BusOp::interrupt_acknowledge) {
      // Only the second cycle's vector counts.
      const bool second = done_ > 0 && cycles_[done_ - 1].t.op == BusOp::interrupt_acknowledge &&
                          acknowledges_before(done_) % 2 == 1;
      if (second) put(0, t.data[0]);
    } else {
      for (unsigned i = 0; i < t.size; ++i) put((t.address.low32() + i) & 7, t.data[i]);
    }
    return value;
  }

  std::size_t acknowledges_before(std::size_t n) const {
    const auto at = std::lower_bound(acknowledges_.begin(), acknowledges_.end(), n);
    return static_cast<std::size_t>(at - acknowledges_.begin());
  }

  Random& random_;
  Tracing tracing_;
  std::unique_ptr<Wave> wave_;
  std::vector<PentiumCycle> cycles_;
  std::vector<std::size_t> acknowledges_;  ///< their numbers, two for each interrupt
  std::size_t begun_ = 0, done_ = 0;
  std::uint64_t pulses_ = 0;
  unsigned items_ = 0;
  bool next_allowed_ = false, ken_settled_ = false;
  std::size_t ads_ = 0, brdy_ = 0, cache_ = 0, ken_ = 0, na_ = 0, boff_ = 0, hitm_ = 0;
};

}  // namespace

std::unique_ptr<Wave> draw_pentium(const Traffic& traffic, Tracing tracing, Random& random) {
  return GeneratorPentium(tracing, random).run(traffic);
}

}  // namespace citcat::test
