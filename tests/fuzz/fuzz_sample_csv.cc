#include "formats/captures/sample_csv.h"
#include "fuzz/drain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_sample_csv(citcat::fuzz::stream(data, size)); });
  return 0;
}
