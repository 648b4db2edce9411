#include "formats/captures/dsview.h"
#include "fuzz/drain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_dsview("fuzz", std::span<const std::uint8_t>(data, size)); });
  return 0;
}
