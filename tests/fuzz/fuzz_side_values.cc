#include "capture/bus/side_values.h"
#include "fuzz/drain_capture.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(side_values) {
  try {
    citcat::read_side_values(citcat::fuzz::stream(data, size));
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
