#include "golden/pins/pin_drawing.h"

#include "unit/capture/bus/bus_generators.h"

namespace citcat::testing {
namespace {

using test::Random;
using test::Wave;

std::vector<std::string> shared_names(unsigned bus_bytes) {
  std::vector<std::string> names;
  test::add_names(names, "AD", 0, static_cast<int>(8 * bus_bytes) - 1);
  test::add_names(names, "A", static_cast<int>(8 * bus_bytes), 19);
  if (bus_bytes == 2) names.push_back("BHE#");
  return names;
}

/// Address, data and BHE# of a clock.
class BusLines {
 public:
  BusLines(const BusUnit& unit, unsigned bus_bytes, Wave& wave, Random& random)
      : unit_(unit), bytes_(bus_bytes), wave_(wave), random_(random) {}

  void draw(const PinClock& clock) {
    wave_.set(0, 20, random_());
    if (bytes_ == 2) wave_.set(20, (random_() & 1) != 0);
    if (clock.phase == ClockPhase::idle) return;
    const BusTransaction& t = unit_.cycles[clock.cycle];
    const std::uint32_t address = t.address.low32();
    if (clock.phase == ClockPhase::t1) {
      wave_.set(0, 20, address);
      // BHE# is low where the upper byte takes part.
      if (bytes_ == 2) wave_.set(20, !(t.size == 2 || address % 2 != 0));
    }
    const bool write = t.op == BusOp::data_write || t.op == BusOp::io_write;
    if (clock.phase == ClockPhase::t3 || (write && clock.phase != ClockPhase::t1)) {
      for (unsigned i = 0; i < t.size; ++i)
        wave_.set(8 * (bytes_ == 1 ? 0 : (address + i) % 2), 8, t.data[i]);
    }
  }

 private:
  const BusUnit& unit_;
  unsigned bytes_;
  Wave& wave_;
  Random& random_;
};

}  // namespace

std::unique_ptr<Wave> draw_status_pins(const BusUnit& unit, unsigned bus_bytes, Random& random) {
  std::vector<std::string> names = shared_names(bus_bytes);
  for (const char* name : {"CLK", "S0#", "S1#", "S2#", "QS0", "QS1", "LOCK#", "INTR"})
    names.emplace_back(name);
  auto wave = std::make_unique<Wave>(names, "CLK", false, random);
  BusLines lines(unit, bus_bytes, *wave, random);
  const std::size_t status = wave->channel("S0#"), queue = wave->channel("QS0");
  for (const PinClock& clock : unit.clocks) {
    lines.draw(clock);
    const bool active = clock.phase == ClockPhase::t1 || clock.phase == ClockPhase::t2 ||
                        clock.phase == ClockPhase::wait;
    wave->set(status, 3, active ? test::status_8086(unit.cycles[clock.cycle].op) : 7);
    // QS1 is the upper bit: 01 first byte, 10 emptied, 11 further byte.
    wave->set(queue, 2, static_cast<unsigned>(clock.queue));
    wave->set(wave->channel("LOCK#"), !clock.locked);
    wave->set(wave->channel("INTR"), clock.request);
    wave->tick();
  }
  return wave;
}

std::unique_ptr<Wave> draw_strobe_pins(const BusUnit& unit, unsigned bus_bytes, Random& random) {
  const bool wide = bus_bytes == 2;
  std::vector<std::string> names = shared_names(bus_bytes);
  for (const char* name : {"CLK", "ALE", "RD#", "WR#", "INTA#", "DT/R#", "HOLD", "HLDA"})
    names.emplace_back(name);
  names.emplace_back(wide ? "M/IO#" : "IO/M#");
  if (!wide) names.emplace_back("SSO#");
  auto wave = std::make_unique<Wave>(names, "CLK", false, random);
  BusLines lines(unit, bus_bytes, *wave, random);
  const auto set = [&](const char* name, bool level) { wave->set(wave->channel(name), level); };
  // ALE ends when CLK rises, or after it (8086 data sheet, TCHLL).
  if ((random() & 1) != 0) wave->fall_in_second_half(wave->channel("ALE"));
  for (const PinClock& clock : unit.clocks) {
    lines.draw(clock);
    for (const char* strobe : {"RD#", "WR#", "INTA#"}) set(strobe, true);
    set("ALE", clock.phase == ClockPhase::t1);
    set("HOLD", clock.held);
    set("HLDA", clock.held);
    if (clock.held) {
      // Its strobes are on the same lines.
      const unsigned strobes = test::draw(random, 4);
      set("RD#", (strobes & 1) == 0);
      set("WR#", strobes != 2);
      set("DT/R#", (random() & 1) != 0);
      set(wide ? "M/IO#" : "IO/M#", (random() & 1) != 0);
    } else if (clock.phase != ClockPhase::idle) {
      const BusTransaction& t = unit.cycles[clock.cycle];
      const bool write = t.op == BusOp::data_write || t.op == BusOp::io_write;
      const bool io = !t.is_memory();
      set(wide ? "M/IO#" : "IO/M#", io != wide);
      set("DT/R#", write || t.op == BusOp::halt);
      if (!wide) {
        set("SSO#", t.op == BusOp::data_read || t.op == BusOp::io_read || t.op == BusOp::halt);
      }
      const bool strobed = clock.phase == ClockPhase::t2 || clock.phase == ClockPhase::wait ||
                           clock.phase == ClockPhase::t3;
      if (strobed && t.op != BusOp::halt) {
        set(t.op == BusOp::interrupt_acknowledge ? "INTA#" : write ? "WR#" : "RD#", false);
      }
      // S4 and S3 tell code from data.
      if (clock.phase != ClockPhase::t1)
        wave->set(16, 2, t.op == BusOp::code_read ? 2u : t.op == BusOp::data_read ? 3u : 0u);
    }
    wave->tick();
  }
  return wave;
}

test::Samples samples_of(Wave& wave, const std::function<bool(const std::string&)>& left_out) {
  const SampleInfo& info = wave.info();
  test::Samples samples;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < info.channels.size(); ++i) {
    if (left_out(info.channels[i])) continue;
    samples.names.push_back(info.channels[i]);
    kept.push_back(i);
  }
  samples.unit = (kept.size() + 7) / 8;
  std::size_t count = 0;
  for (SampleBlock block; wave.next(block);) {
    const std::size_t added = block.bytes.size() / info.unit_bytes;
    samples.bytes.resize((count + added) * samples.unit);
    for (std::size_t s = 0; s < added; ++s, ++count) {
      const std::uint8_t* const sample = &block.bytes[s * info.unit_bytes];
      for (std::size_t c = 0; c < kept.size(); ++c)
        if ((sample[kept[c] / 8] >> (kept[c] % 8) & 1) != 0) samples.set(count, c, true);
    }
  }
  return samples;
}

}  // namespace citcat::testing
