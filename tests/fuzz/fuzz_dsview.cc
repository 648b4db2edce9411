#include "formats/captures/dsview.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(dsview) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_dsview("fuzz", std::span<const std::uint8_t>(data, size)); });
  return 0;
}
