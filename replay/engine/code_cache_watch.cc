#include "replay/engine/code_cache_watch.h"

#include <sys/mman.h>

#include "events/machine/address.h"

namespace citcat {

void CodeCacheWatch::watch(std::span<std::uint8_t> cache) {
  std::uint8_t* const middle = cache.subspan(cache.size() / 2).data();
  middle_ = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(middle) &
                                    ~std::uintptr_t{kPageSize - 1});
}

bool CodeCacheWatch::half_full() const {
  // The library fills its cache from the beginning on, and touches nothing before it needs it.
  unsigned char resident = 0;
  return middle_ != nullptr && (mincore(middle_, kPageSize, &resident) != 0 || (resident & 1) != 0);
}

}  // namespace citcat
