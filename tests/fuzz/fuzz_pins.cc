#include <cstdint>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

// The first byte chooses the bus, the rest are samples: pin i of the bus is channel i.
CITCAT_FUZZ_TARGET(pins) {
  if (size == 0) return 0;
  const auto buses = citcat::bus_descriptions();
  const citcat::BusDescription& bus = buses[data[0] % buses.size()];
  citcat::SampleInfo samples;
  samples.name = "fuzz";
  citcat::PinAssignment assignment;
  assignment.address_mask = bus.address_mask;
  if ((data[0] & 0x80) != 0) assignment.edge = citcat::ClockEdge::every;
  for (const citcat::PinDescription& pin : bus.pins()) {
    assignment.pins.push_back({static_cast<int>(samples.channels.size()), false});
    samples.channels.push_back(pin.name);
  }
  samples.unit_bytes = (samples.channels.size() + 7) / 8;
  const std::size_t count = (size - 1) / samples.unit_bytes;
  try {
    const auto decoder = bus.make(samples, {bus, assignment});
    citcat::SampleBlock block;
    block.bytes = std::span<const std::uint8_t>(data, size).subspan(1, count * samples.unit_bytes);
    citcat::BusTransaction transaction;
    if (count != 0) decoder->decode(block);
    while (decoder->take(transaction)) {
    }
    decoder->finish();
    while (decoder->take(transaction)) {
    }
    decoder->warnings();
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
