// Waveforms of the 8086 and 8088 (Intel 8086 data sheet, figures "System timing").

#include "tests/unit/capture/bus/bus_generators.h"

namespace citcat::test {
namespace {

std::vector<std::string> names_of(unsigned bus_bytes) {
  std::vector<std::string> names;
  const int data = bus_bytes == 2 ? 16 : 8;
  add_names(names, "AD", 0, data - 1);
  add_names(names, "A", data, 19);
  if (bus_bytes == 2) names.push_back("BHE#");
  return names;
}

/// Level of BHE#: the upper byte lane takes part.
bool bhe_level(const BusTransaction& t) { return !(t.size == 2 || (t.address.low32() & 1) != 0); }

/// The bytes on their lanes; lanes that take no part float.
std::uint64_t data_of(const BusTransaction& t, unsigned bus_bytes, Random& random) {
  if (bus_bytes == 1) return t.data[0];
  std::uint64_t value = random() & 0xffff;
  for (unsigned i = 0; i < t.size; ++i) {
    const unsigned lane = (t.address.low32() + i) & 1;
    value = (value & ~(std::uint64_t{0xff} << (8 * lane))) | std::uint64_t{t.data[i]} << (8 * lane);
  }
  return value;
}

struct Lines {
  std::size_t address, bhe = 0;
  unsigned bus_bytes;
  Wave& wave;
  Random& random;

  void address_phase(const BusTransaction& t) {
    wave.set(address, 20, t.address.value);
    if (bus_bytes == 2) wave.set(bhe, bhe_level(t));
  }
  void garbage() {
    wave.set(address, 20, random());
    if (bus_bytes == 2) wave.set(bhe, (random() & 1) != 0);
  }
  void data_phase(const BusTransaction& t) {
    garbage();
    wave.set(address, 8 * bus_bytes, data_of(t, bus_bytes, random));
  }
};

}  // namespace

std::unique_ptr<Wave> draw_8086_max(const Traffic& traffic, unsigned bus_bytes, Random& random) {
  auto names = names_of(bus_bytes);
  for (const char* name : {"CLK", "S0#", "S1#", "S2#"}) names.push_back(name);
  auto wave = std::make_unique<Wave>(names, "CLK", false, random);
  Lines lines{0, bus_bytes == 2 ? wave->channel("BHE#") : 0, bus_bytes, *wave, random};
  const std::size_t status = wave->channel("S0#");
  const auto clock = [&](unsigned s) {
    wave->set(status, 3, s);
    wave->tick();
  };
  clock(7);
  for (const BusTransaction& t : traffic) {
    for (unsigned n = t.op == BusOp::interrupt_acknowledge ? 2u : 1u; n != 0; --n) {
      for (unsigned idle = draw(random, 3); idle != 0; --idle) clock(7);
      lines.address_phase(t);
      clock(status_8086(t.op));  // T1
      lines.garbage();
      clock(status_8086(t.op));  // T2
      for (unsigned waits = draw(random, 4); waits != 0; --waits) clock(status_8086(t.op));
      lines.data_phase(t);
      clock(7);  // T3, or the last wait state
      lines.garbage();
      clock(7);  // T4
    }
  }
  return wave;
}

std::unique_ptr<Wave> draw_8086_min(const Traffic& traffic, unsigned bus_bytes, Random& random) {
  auto names = names_of(bus_bytes);
  const bool wide = bus_bytes == 2;
  for (const char* name : {"CLK", "ALE", "RD#", "WR#", "INTA#", "DT/R#"}) names.push_back(name);
  names.push_back(wide ? "M/IO#" : "IO/M#");
  if (!wide) names.push_back("SSO#");
  auto wave = std::make_unique<Wave>(names, "CLK", false, random);
  Lines lines{0, wide ? wave->channel("BHE#") : 0, bus_bytes, *wave, random};
  const std::size_t ale = wave->channel("ALE"), rd = wave->channel("RD#"),
                    wr = wave->channel("WR#"), inta = wave->channel("INTA#"),
                    dtr = wave->channel("DT/R#"), io = wave->channel(wide ? "M/IO#" : "IO/M#");
  const auto idle = [&] {
    for (const std::size_t strobe : {rd, wr, inta}) wave->set(strobe, true);
    wave->set(ale, false);
    lines.garbage();
  };
  idle();
  wave->tick();
  for (const BusTransaction& t : traffic) {
    const bool write = t.op == BusOp::data_write || t.op == BusOp::io_write;
    const bool is_io = t.op == BusOp::io_read || t.op == BusOp::io_write ||
                       t.op == BusOp::interrupt_acknowledge || t.op == BusOp::halt;
    for (unsigned n = t.op == BusOp::interrupt_acknowledge ? 2u : 1u; n != 0; --n) {
      idle();
      for (unsigned wait = draw(random, 3); wait != 0; --wait) wave->tick();
      wave->set(io, is_io != wide);
      // A halt shows DT/R# and SSO# high with IO/M# high.
      wave->set(dtr, write || t.op == BusOp::halt);
      if (!wide) {
        const bool sso = t.op == BusOp::data_read || t.op == BusOp::io_read || t.op == BusOp::halt;
        wave->set(wave->channel("SSO#"), sso);
      }
      wave->set(ale, true);
      lines.address_phase(t);
      wave->tick();  // T1
      wave->set(ale, false);
      lines.garbage();
      if (t.op == BusOp::halt) continue;
      // S4 and S3 tell code from data on the 8086.
      const auto segment = [&] {
        if (wide) wave->set(16, 2, t.op == BusOp::code_read ? 2u : draw(random, 2));
      };
      wave->set(t.op == BusOp::interrupt_acknowledge ? inta : write ? wr : rd, false);
      segment();
      wave->tick();  // T2
      for (unsigned waits = draw(random, 4); waits != 0; --waits) {
        lines.garbage();
        segment();
        wave->tick();
      }
      lines.data_phase(t);
      segment();
      wave->tick();  // T3
      idle();
      wave->tick();  // T4
    }
  }
  idle();
  wave->tick();
  return wave;
}

}  // namespace citcat::test
