#include <algorithm>

#include "formats/captures/saleae.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(saleae) {
  // The first byte says where the file of a second channel begins.
  const std::size_t cut = size == 0 ? 0 : std::min<std::size_t>(size, data[0] * std::size_t{4});
  citcat::fuzz::drain_samples([&] {
    std::vector<citcat::SaleaeChannel> channels;
    channels.push_back({"0", citcat::fuzz::stream(data + (size != 0), size - (size != 0))});
    if (cut > 1) channels.push_back({"1", citcat::fuzz::stream(data + cut, size - cut)});
    return citcat::open_saleae(std::move(channels));
  });
  return 0;
}
