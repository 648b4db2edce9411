#pragma once
// Pin-level generators, one a bus: they draw the waveforms of given transactions, after the timing
// diagrams of the data sheets, with random wait states, idle states, pipelining, back-offs and
// interrupted bursts.

#include <memory>
#include <vector>

#include "tests/unit/capture/bus_traffic.h"
#include "tests/unit/capture/wave.h"

namespace citcat::test {

using Traffic = std::vector<BusTransaction>;

std::unique_ptr<Wave> draw_8086_max(const Traffic& traffic, unsigned bus_bytes, Random& random);
std::unique_ptr<Wave> draw_8086_min(const Traffic& traffic, unsigned bus_bytes, Random& random);
std::unique_ptr<Wave> draw_286(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_386sx(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_386dx(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_486(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_pentium(const Traffic& traffic, Random& random);

}  // namespace citcat::test
