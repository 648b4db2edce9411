// The payload of a PLAC chunk, below its hash. What is understood is written and read again.

#include <cstdint>

#include "events/placement.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(placements) {
  try {
    citcat::ByteReader in({data, size}, "input");
    const auto events = citcat::decode_placements(in);
    const auto written = citcat::encode_placements(events);
    citcat::ByteReader again(written, "written");
    CITCAT_ASSERT(citcat::decode_placements(again) == events);
    citcat::Recording recording;
    recording.interrupts.resize(8);
    citcat::apply_placements(events, recording);
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
