#include "golden/pins/pin_run.h"

#include <stdexcept>

#include "golden/pins/pin_drawing.h"
#include "golden/pins/pin_programs.h"
#include "unit/capture/bus/bus_generators.h"

namespace citcat::testing {
namespace {

ModelTraits model_traits(const PinCase& c) {
  const std::string cpu = c.cpu;
  ModelTraits traits;
  traits.has_8087 = c.has_8087;
  const bool later = cpu == "286" || cpu == "386";
  traits.has_nec = cpu == "v20" || cpu == "v30";
  traits.has_186 = cpu != "8086" && cpu != "8088";
  traits.keeps_one_prefix = !traits.has_186;
  if (later) {
    traits.pushes_old_sp = true;
    traits.set_flags = 2;
    traits.vector_first = false;
  }
  traits.pusha_upward = traits.compares_destination_first = traits.returns_flags_first =
      cpu == "286";
  return traits;
}

BusUnitTraits bus_traits(const PinCase& c) {
  BusUnitTraits traits;
  traits.bus_bytes = is_wide(c.cpu) ? 2 : 1;
  traits.queue_bytes = is_wide(c.cpu) ? 6 : 4;
  traits.has_waits = c.has_waits;
  if (c.form == PinForm::bus_386sx) traits.queue_bytes = 16;
  return traits;
}

/// A trace, a record after the other (docs/formats/kt.md).
std::string kt_record(const ModelStep& step) {
  std::string record;
  const auto word = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) record += static_cast<char>(value >> (8 * i));
  };
  word(step.linear);
  record += static_cast<char>(step.addresses.size() << 4 | step.shown.size());
  record.append(step.shown.begin(), step.shown.end());
  while (record.size() % 4 != 0) record += '\0';
  for (const std::uint32_t address : step.addresses) word(address);
  return record;
}

std::uint32_t start_of(const PinCase& c) {
  const bool resets = c.form == PinForm::status || c.form == PinForm::strobes;
  return resets ? 0xffff0u : kProgramSegment * 16u + kProgramOffset;
}

}  // namespace

bool is_wide(const std::string& cpu) { return cpu != "8088" && cpu != "80188" && cpu != "v20"; }

ModelRun::ModelRun(const PinCase& c, unsigned seed)
    : processor(model_traits(c)),
      unit(bus_traits(c), processor.memory, start_of(c), seed),
      random(seed) {
  if (c.is_long) {
    load_long_program(processor, seed);
  } else {
    load_program(processor, model_traits(c), seed % 2 != 0);
  }
  processor.s[ModelProcessor::cs] =
      static_cast<std::uint16_t>(start_of(c) == 0xffff0 ? 0xffff : kProgramSegment);
  processor.ip = start_of(c) == 0xffff0 ? 0 : kProgramOffset;
  run();
}

void ModelRun::run() {
  for (unsigned steps = 0; steps < 20000; ++steps) {
    if (processor.halted() && !processor.takes_interrupts()) return;
    const bool due = processor.halted() || random() % 12 == 0;
    if (due && processor.takes_interrupts()) {
      ++interrupts;
      add(processor.interrupt(kProgramVector));
    }
    add(processor.step());
    if (random() % 16 == 0) {
      // Another master takes the bus, and now and then writes.
      unit.hold();
      if (random() % 2 == 0) processor.memory[kForeignBuffer + random() % 2] ^= 0x5a;
    }
  }
  throw std::logic_error("the program does not end");
}

void ModelRun::add(const ModelStep& step) {
  unit.run(step);
  if (step.recorded) records.push_back(kt_record(step));
}

std::unique_ptr<test::Wave> draw_pins(const PinCase& c, const BusUnit& unit, test::Random& random) {
  switch (c.form) {
    case PinForm::status:
      return draw_status_pins(unit, is_wide(c.cpu) ? 2 : 1, random);
    case PinForm::strobes:
      return draw_strobe_pins(unit, is_wide(c.cpu) ? 2 : 1, random);
    case PinForm::bus_286:
      return test::draw_286(unit.cycles, random);
    case PinForm::bus_386sx:
      break;
  }
  return test::draw_386sx(unit.cycles, random);
}

}  // namespace citcat::testing
