#include "capture/bus/side_values.h"
#include "fuzz/drain_capture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    citcat::read_side_values(citcat::fuzz::stream(data, size));
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
