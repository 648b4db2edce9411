#include "formats/captures/vcd.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(vcd) {
  citcat::fuzz::drain_samples([&] { return citcat::open_vcd(citcat::fuzz::stream(data, size)); });
  return 0;
}
