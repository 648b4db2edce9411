#include "formats/captures/lac.h"
#include "fuzz/drain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  citcat::fuzz::drain_samples([&] { return citcat::open_lac(citcat::fuzz::stream(data, size)); });
  return 0;
}
