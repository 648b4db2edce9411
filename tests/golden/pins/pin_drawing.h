#pragma once
// Pins of processors of 16 bits, drawn from the clocks of their bus unit after the timing diagrams
// of the 8086, 80186 and V20 data sheets.

#include <memory>
#include <string>

#include "golden/pins/bus_unit.h"
#include "unit/capture/bus/wave.h"
#include "unit/capture/sample_writers.h"

namespace citcat::testing {

/// AD, A, S0-S2, QS0, QS1, LOCK, INTR; BHE with a bus of two bytes.
std::unique_ptr<test::Wave> draw_status_pins(const BusUnit& unit, unsigned bus_bytes,
                                             test::Random& random);
/// AD, A, ALE, RD, WR, INTA, IO/M or M/IO, DT/R, HOLD, HLDA; SSO with a bus of one byte, else BHE.
/// While another master has the bus it drives RD and WR.
std::unique_ptr<test::Wave> draw_strobe_pins(const BusUnit& unit, unsigned bus_bytes,
                                             test::Random& random);

/// The samples of a wave, without the channels for which `left_out` holds.
test::Samples samples_of(test::Wave& wave, const std::function<bool(const std::string&)>& left_out);

}  // namespace citcat::testing
