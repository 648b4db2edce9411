#pragma once
// State listings: an analyser that was clocked by the bus shows one line a completed cycle, with
// address, data and status together. Every sample is a transaction.

#include <memory>
#include <vector>

#include "capture/bus/bus_decoder.h"

namespace citcat {

const std::vector<PinDescription>& pins_8088_states();
const std::vector<PinDescription>& pins_8086_states();
const std::vector<PinDescription>& pins_286_states();
const std::vector<PinDescription>& pins_386sx_states();
const std::vector<PinDescription>& pins_386dx_states();
const std::vector<PinDescription>& pins_486_states();
const std::vector<PinDescription>& pins_pentium_states();
std::unique_ptr<BusDecoder> make_states(const SampleInfo& samples, const PinSet& pins);

}  // namespace citcat
