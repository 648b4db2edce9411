#include "replay/code_cache_watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "events/address.h"

namespace citcat {

std::vector<CodeCacheWatch::Range> CodeCacheWatch::writable_code() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");  // proc(5)
  for (std::string line; std::getline(maps, line);) {
    Range range;
    std::array<char, 5> access{};
    const int fields = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &range.begin,
                                   &range.end, access.data());
    if (fields == 3 && std::string_view(access.data()).starts_with("rwx")) ranges.push_back(range);
  }
  return ranges;
}

CodeCacheWatch::CodeCacheWatch() : before_(writable_code()) {}

bool CodeCacheWatch::find(std::size_t bytes) {
  for (const Range& range : writable_code()) {
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
