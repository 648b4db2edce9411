#include "formats/captures/lac.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(lac) {
  citcat::fuzz::drain_samples([&] { return citcat::open_lac(citcat::fuzz::stream(data, size)); });
  return 0;
}
