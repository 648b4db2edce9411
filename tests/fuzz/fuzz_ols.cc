#include "formats/captures/ols.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(ols) {
  citcat::fuzz::drain_samples([&] { return citcat::open_ols(citcat::fuzz::stream(data, size)); });
  return 0;
}
