#pragma once
// The buses of the 8086 and 8088 in maximum mode, where the processor itself says on S2-S0 what
// kind of cycle it makes (Intel 8086 data sheet, table "Status").

#include <memory>
#include <vector>

#include "capture/bus_decoder.h"

namespace citcat {

const std::vector<PinDescription>& pins_8088_max();
const std::vector<PinDescription>& pins_8086_max();
std::unique_ptr<BusDecoder> make_8086_max(const SampleInfo& samples, const PinSet& pins);

}  // namespace citcat
