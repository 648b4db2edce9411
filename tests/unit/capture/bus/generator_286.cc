// Waveforms of the 80286 and 80386 (Intel 80286 data sheet, "Bus states"; 386DX data sheet, "Bus
// cycles using nonpipelined/pipelined address").

#include "tests/unit/capture/bus/bus_generators.h"

namespace citcat::test {
namespace {

struct Cycle286 {
  const BusTransaction* t;
  std::uint32_t address;  ///< on the pins
  unsigned enables;       ///< active lanes
  bool narrow = false;    ///< a 16-bit device answers (386DX)
};

std::uint32_t word_address(const BusTransaction& t, unsigned bus_bytes) {
  return t.address.low32() & ~(bus_bytes - 1);
}
unsigned lanes_of(const BusTransaction& t, unsigned bus_bytes) {
  return ((1u << t.size) - 1) << (t.address.low32() & (bus_bytes - 1));
}
std::uint64_t data_on_lanes(const BusTransaction& t, unsigned bus_bytes, Random& random) {
  std::uint64_t value = random();
  for (unsigned i = 0; i < t.size; ++i) {
    const unsigned shift = 8 * ((t.address.low32() + i) & (bus_bytes - 1));
    value = (value & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{t.data[i]} << shift;
  }
  return value;
}

/// Bus cycles of the traffic: acknowledges twice, at address 4 and 0.
std::vector<Cycle286> cycles_of(const Traffic& traffic, unsigned bus_bytes) {
  std::vector<Cycle286> cycles;
  for (const BusTransaction& t : traffic) {
    if (t.op == BusOp::interrupt_acknowledge) {
      cycles.push_back({&t, 4, 1});
      cycles.push_back({&t, 0, 1});
    } else if (t.op == BusOp::halt) {
      cycles.push_back({&t, bus_bytes == 4 ? 0u : 2u, bus_bytes == 4 ? 4u : 1u});
    } else if (t.op == BusOp::shutdown) {
      cycles.push_back({&t, 0, 1});
    } else {
      cycles.push_back({&t, word_address(t, bus_bytes), lanes_of(t, bus_bytes)});
    }
  }
  return cycles;
}

/// M/IO#, D/C#, W/R# as bits 2, 1, 0 (386EX manual, table 6-2).
unsigned definition_386(BusOp op) {
  switch (op) {
    case BusOp::interrupt_acknowledge:
      return 0;
    case BusOp::io_read:
      return 2;
    case BusOp::io_write:
      return 3;
    case BusOp::code_read:
      return 4;
    case BusOp::halt:
    case BusOp::shutdown:
      return 5;
    case BusOp::data_read:
      return 6;
    default:
      return 7;
  }
}

/// S0#, S1#, M/IO#, COD/INTA# as bits 0 to 3.
unsigned status_286(BusOp op) {
  switch (op) {
    case BusOp::interrupt_acknowledge:
      return 0;
    case BusOp::halt:
    case BusOp::shutdown:
      return 4;
    case BusOp::data_read:
      return 5;
    case BusOp::data_write:
      return 6;
    case BusOp::io_read:
      return 9;
    case BusOp::io_write:
      return 10;
    default:
      return 13;
  }
}

}  // namespace

std::unique_ptr<Wave> draw_286(const Traffic& traffic, Random& random) {
  std::vector<std::string> names;
  add_names(names, "A", 0, 23);
  add_names(names, "D", 0, 15);
  for (const char* name : {"CLK", "S0#", "S1#", "M/IO#", "COD/INTA#", "BHE#", "READY#"})
    names.push_back(name);
  auto wave = std::make_unique<Wave>(names, "CLK", false, random);
  const std::size_t status = wave->channel("S0#"), bhe = wave->channel("BHE#"),
                    ready = wave->channel("READY#");
  wave->float_in_first_half(24, 16);
  wave->set(status, 2, 3);
  wave->set(ready, true);
  for (unsigned n = 1 + draw(random, 4); n != 0; --n) wave->tick();
  for (const Cycle286& cycle : cycles_of(traffic, 2)) {
    for (unsigned idle = 2 * draw(random, 3); idle != 0; --idle) wave->tick();
    const bool high = (cycle.enables & 2) != 0, low = (cycle.enables & 1) != 0;
    wave->set(0, 24, cycle.address | (low ? 0u : 1u));
    wave->set(bhe, !high);
    wave->set(status, 4, status_286(cycle.t->op));
    wave->tick();  // Ts
    wave->tick();
    wave->set(status, 2, 3);
    // The next address may already be there.
    wave->set(0, 24, random());
    wave->set(bhe, (random() & 1) != 0);
    for (unsigned waits = draw(random, 3); waits != 0; --waits) {
      wave->set(24, 16, random());
      wave->tick();
      wave->tick();
    }
    wave->tick();  // Tc
    wave->set(ready, false);
    wave->set(24, 16, data_on_lanes(*cycle.t, 2, random));
    if (cycle.t->op == BusOp::interrupt_acknowledge) wave->set(24, 8, cycle.t->data[0]);
    wave->tick();
    wave->set(ready, true);
  }
  wave->tick();
  return wave;
}

namespace {

/// The 386's state machine for both widths.
class Generator386 {
 public:
  Generator386(const Traffic& traffic, unsigned bus_bytes, Random& random)
      : random_(random), bus_bytes_(bus_bytes), cycles_(cycles_of(traffic, bus_bytes)) {
    std::vector<std::string> names;
    add_names(names, "A", bus_bytes == 4 ? 2 : 1, bus_bytes == 4 ? 31 : 25);
    address_count_ = static_cast<unsigned>(names.size());
    data_ = names.size();
    add_names(names, "D", 0, static_cast<int>(8 * bus_bytes) - 1);
    enables_ = names.size();
    if (bus_bytes == 4) {
      add_names(names, "BE", 0, 3);
    } else {
      names.push_back("BLE#");
      names.push_back("BHE#");
    }
    definition_ = names.size();
    for (const char* name : {"W/R#", "D/C#", "M/IO#", "ADS#", "READY#", "CLK2"})
      names.push_back(name);
    if (bus_bytes == 4) names.push_back("BS16#");
    wave_ = std::make_unique<Wave>(names, "CLK2", true, random);
    ads_ = wave_->channel("ADS#");
    ready_ = wave_->channel("READY#");
    wave_->float_in_first_half(data_, 8 * bus_bytes);
    if (bus_bytes == 4) join_narrow();
  }

  std::unique_ptr<Wave> run() {
    wave_->set(ads_, true);
    wave_->set(ready_, true);
    if (bus_bytes_ == 4) wave_->set(wave_->channel("BS16#"), true);
    wave_->tick();
    bool pipelined = false;
    for (std::size_t i = 0; i < cycles_.size(); ++i) {
      if (!pipelined) {
        for (unsigned idle = draw(random_, 3); idle != 0; --idle) state();
        show(cycles_[i]);
        wave_->set(ads_, false);  // T1
      }
      state();  // T1 or T1P: READY# does not count here
      wave_->set(ads_, true);
      pipelined = data_phase(i, pipelined);
    }
    state();
    return std::move(wave_);
  }

 private:
  void state() {
    wave_->tick();
    wave_->tick();
  }

  void show(const Cycle286& cycle) {
    wave_->set(0, address_count_, cycle.address >> (bus_bytes_ == 4 ? 2 : 1));
    wave_->set(enables_, bus_bytes_, ~cycle.enables);
    wave_->set(definition_, 3, definition_386(cycle.t->op));
  }

  /// T2 states until READY#. True when the next cycle's address was given meanwhile (T2P).
  bool data_phase(std::size_t i, bool began_pipelined) {
    const Cycle286& cycle = cycles_[i];
    const unsigned waits = draw(random_, 3);
    // NA# is looked at in the first T2 of a nonpipelined cycle, so T2P cannot be before the second.
    const unsigned earliest = began_pipelined ? 0 : 1;
    const bool pipeline = i + 1 < cycles_.size() && waits >= earliest && draw(random_, 2) == 0;
    const unsigned from = pipeline ? earliest + draw(random_, waits - earliest + 1) : ~0u;
    const bool pulse = draw(random_, 2) == 0;
    for (unsigned state_number = 0; state_number <= waits; ++state_number) {
      if (state_number == from) {
        show(cycles_[i + 1]);
        wave_->set(ads_, false);
      } else if (state_number > from && pulse) {
        wave_->set(ads_, true);
      }
      const bool last = state_number == waits;
      wave_->tick();
      wave_->set(ready_, !last);
      if (bus_bytes_ == 4) wave_->set(wave_->channel("BS16#"), !(last && cycle.narrow));
      wave_->set(data_, 8 * bus_bytes_, last ? data_of(cycle) : random_());
      wave_->tick();
      wave_->set(ready_, true);
    }
    wave_->set(ads_, true);
    if (bus_bytes_ == 4) wave_->set(wave_->channel("BS16#"), true);
    return pipeline;
  }

  std::uint64_t data_of(const Cycle286& cycle) {
    const BusTransaction& t = *cycle.t;
    if (t.op == BusOp::interrupt_acknowledge) return (random_() & ~std::uint64_t{0xff}) | t.data[0];
    std::uint64_t value = data_on_lanes(t, bus_bytes_, random_);
    const bool write = t.op == BusOp::data_write || t.op == BusOp::io_write;
    // A 16-bit device answers for the upper half on D15-0, where writes are repeated.
    if (cycle.narrow && (t.address.low32() & 2) != 0)
      value = write ? (value & 0xffff0000) | ((value >> 16) & 0xffff)
                    : (random_() & 0xffff0000) | ((value >> 16) & 0xffff);
    return value;
  }

  /// Some cycles are with 16-bit devices. Where two neighbours are the halves of one access, the
  /// first asks for both.
  void join_narrow() {
    for (std::size_t i = 0; i < cycles_.size(); ++i) {
      Cycle286& cycle = cycles_[i];
      const bool moves =
          cycle.t->is_memory() || cycle.t->op == BusOp::io_read || cycle.t->op == BusOp::io_write;
      if (!moves) continue;
      const bool one_half = (cycle.enables & 3) == 0 || (cycle.enables & 12) == 0;
      if (!one_half || draw(random_, 2) == 0) continue;
      cycle.narrow = true;
      if (i + 1 == cycles_.size()) continue;
      const Cycle286& other = cycles_[i + 1];
      if (other.t->op == cycle.t->op && other.address == cycle.address &&
          (other.enables & 3) == 0 && (other.enables & 4) != 0 && (cycle.enables & 2) != 0)
        cycle.enables |= other.enables;
    }
  }

  Random& random_;
  unsigned bus_bytes_;
  std::vector<Cycle286> cycles_;
  std::unique_ptr<Wave> wave_;
  unsigned address_count_ = 0;
  std::size_t data_ = 0, enables_ = 0, definition_ = 0, ads_ = 0, ready_ = 0;
};

}  // namespace

std::unique_ptr<Wave> draw_386sx(const Traffic& traffic, Random& random) {
  return Generator386(traffic, 2, random).run();
}
std::unique_ptr<Wave> draw_386dx(const Traffic& traffic, Random& random) {
  return Generator386(traffic, 4, random).run();
}

}  // namespace citcat::test
