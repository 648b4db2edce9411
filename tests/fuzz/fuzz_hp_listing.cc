#include "formats/captures/hp_listing.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(hp_listing) {
  // Two labels, cut at the first form feed.
  std::size_t cut = 0;
  while (cut < size && data[cut] != 12) ++cut;
  citcat::fuzz::drain_samples([&] {
    std::vector<citcat::HpLabel> labels;
    labels.push_back({citcat::fuzz::stream(data, cut)});
    if (cut < size) labels.push_back({citcat::fuzz::stream(data + cut + 1, size - cut - 1)});
    return citcat::open_hp_listing(std::move(labels));
  });
  return 0;
}
