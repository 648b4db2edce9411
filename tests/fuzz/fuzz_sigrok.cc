#include "formats/captures/sigrok.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(sigrok) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_sigrok("fuzz", std::span<const std::uint8_t>(data, size)); });
  return 0;
}
