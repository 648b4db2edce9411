#pragma once
// A program run by the model, and its pins: of each processor of 16 bits, in each form of its bus.

#include <memory>
#include <string>
#include <vector>

#include "golden/pins/bus_unit.h"
#include "golden/pins/model_processor.h"
#include "unit/capture/bus/wave.h"

namespace citcat::testing {

enum class PinForm : std::uint8_t { status, strobes, bus_286, bus_386sx };
enum class Probes : std::uint8_t { all, no_upper_lines, no_queue, no_upper_lines_no_queue };

struct PinCase {
  const char* cpu;
  PinForm form;
  Probes probes = Probes::all;
  bool has_8087 = false;
  bool has_waits = true;
  bool is_long = false;  ///< the long program, whose code is all over the memory
};

/// Whether its bus has two bytes.
bool is_wide(const std::string& cpu);

/// A run of the model, its bus and its trace.
struct ModelRun {
  ModelRun(const PinCase& c, unsigned seed);

  ModelProcessor processor;
  BusUnit unit;
  test::Random random;
  std::vector<std::string> records;
  unsigned interrupts = 0;

 private:
  void run();
  void add(const ModelStep& step);
};

std::unique_ptr<test::Wave> draw_pins(const PinCase& c, const BusUnit& unit, test::Random& random);

}  // namespace citcat::testing
