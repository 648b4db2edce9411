#pragma once
// The buses of the 80286 and of the 80386 (SX, EX, DX): an address phase, which the 386 may begin
// before the data of the previous cycle arrived, and a data phase that READY# ends.

#include <memory>
#include <vector>

#include "capture/bus/bus_decoder.h"

namespace citcat {

const std::vector<PinDescription>& pins_286();
const std::vector<PinDescription>& pins_386sx();
const std::vector<PinDescription>& pins_386dx();
std::unique_ptr<BusDecoder> make_286(const SampleInfo& samples, const PinSet& pins);
std::unique_ptr<BusDecoder> make_386sx(const SampleInfo& samples, const PinSet& pins);
std::unique_ptr<BusDecoder> make_386dx(const SampleInfo& samples, const PinSet& pins);

}  // namespace citcat
