#include "formats/captures/sample_csv.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(sample_csv) {
  citcat::fuzz::drain_samples(
      [&] { return citcat::open_sample_csv(citcat::fuzz::stream(data, size)); });
  return 0;
}
