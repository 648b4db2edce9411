#pragma once
// The buses of the i486 and the Pentium: an address with ADS#, then one transfer or a burst, each
// item ended by a ready pin.

#include <memory>
#include <vector>

#include "capture/bus/bus_decoder.h"

namespace citcat {

const std::vector<PinDescription>& pins_486();
const std::vector<PinDescription>& pins_pentium();
std::unique_ptr<BusDecoder> make_486(const SampleInfo& samples, const PinSet& pins);
std::unique_ptr<BusDecoder> make_pentium(const SampleInfo& samples, const PinSet& pins);

}  // namespace citcat
