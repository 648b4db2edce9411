#pragma once
// The buses of the 8086 and 8088. In maximum mode the processor itself says on S2-S0 what kind of
// cycle it makes (Intel 8086 data sheet, table "Status"); in minimum mode its strobes do.

#include <memory>
#include <vector>

#include "capture/bus/bus_decoder.h"

namespace citcat {

const std::vector<PinDescription>& pins_8088_max();
const std::vector<PinDescription>& pins_8086_max();
std::unique_ptr<BusDecoder> make_8086_max(const SampleInfo& samples, const PinSet& pins);

/// Minimum mode: ALE, then one of the strobes RD#, WR# and INTA#.
const std::vector<PinDescription>& pins_8088_min();
const std::vector<PinDescription>& pins_8086_min();
std::unique_ptr<BusDecoder> make_8086_min(const SampleInfo& samples, const PinSet& pins);

}  // namespace citcat
