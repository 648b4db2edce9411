#include "replay/engine/code_cache_watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <string_view>

#include "events/address.h"

namespace citcat {

namespace {

/// Of mappings that can be written and executed.
constexpr std::string_view kCode = "rwx";

}  // namespace

CodeCacheWatch::CodeCacheWatch() : before_(host_mappings(kCode)) {}

bool CodeCacheWatch::find(std::size_t bytes) {
  for (const HostMapping& range : host_mappings(kCode)) {
    const std::size_t size = range.end - range.begin;
    const bool is_new = std::find(before_.begin(), before_.end(), range) == before_.end();
    if (!is_new || size > bytes || size < bytes / 2) continue;
    const std::uintptr_t middle = (range.begin + size / 2) & ~std::uintptr_t{kPageSize - 1};
    middle_ = reinterpret_cast<void*>(middle);
    return true;
  }
  return false;
}

bool CodeCacheWatch::half_full() const {
  // The library fills its cache from the beginning on, and touches nothing before it needs it.
  unsigned char resident = 0;
  return middle_ != nullptr && (mincore(middle_, kPageSize, &resident) != 0 || (resident & 1) != 0);
}

}  // namespace citcat
