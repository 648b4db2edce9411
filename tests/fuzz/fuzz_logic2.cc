#include "formats/captures/logic2.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(logic2) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_logic2("fuzz", std::span<const std::uint8_t>(data, size)); });
  return 0;
}
