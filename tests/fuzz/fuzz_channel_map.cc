#include <cstdint>
#include <string>

#include "capture/bus/channel_map.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

// A channel map as text, against a capture that has the usual names.
CITCAT_FUZZ_TARGET(channel_map) {
  citcat::SampleInfo samples;
  samples.name = "fuzz";
  for (const char* stem : {"AD", "A", "D", "S", "QS"})
    for (int i = 0; i < 32; ++i) samples.channels.push_back(stem + std::to_string(i));
  samples.channels.push_back("CLK");
  samples.unit_bytes = (samples.channels.size() + 7) / 8;
  try {
    const auto map = citcat::parse_channel_map(std::string(data, data + size), "map");
    const auto match = citcat::choose_bus(samples, map, citcat::CpuModel::unknown);
    citcat::assign_pins(match, map);
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
