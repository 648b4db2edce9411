#include "capture/bus/side_values.h"
#include "fuzz/drain_capture.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(side_values) {
  for (const bool dropped : {false, true}) {
    try {
      auto input = citcat::fuzz::stream(data, size);
      if (dropped)
        citcat::read_dropped_translations(std::move(input));
      else
        citcat::read_side_values(std::move(input));
    } catch (const citcat::FormatError&) {
    }
  }
  return 0;
}
