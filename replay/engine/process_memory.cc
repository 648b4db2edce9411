#include "replay/engine/process_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace citcat {

std::vector<HostMapping> host_mappings(std::string_view permissions) {
  std::vector<HostMapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    HostMapping mapping;
    std::array<char, 5> allowed{};
    const int fields = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &mapping.begin,
                                   &mapping.end, allowed.data());
    if (fields == 3 && std::string_view(allowed.data()).starts_with(permissions)) {
      found.push_back(mapping);
    }
  }
  return found;
}

std::vector<HostMapping> joined(const std::vector<HostMapping>& mappings) {
  std::vector<HostMapping> ranges;
  for (const HostMapping& m : mappings) {
    if (!ranges.empty() && ranges.back().end == m.begin) {
      ranges.back().end = m.end;
    } else {
      ranges.push_back(m);
    }
  }
  return ranges;
}

bool lies_in(const std::vector<HostMapping>& mappings, std::uintptr_t at, std::size_t size) {
  const std::vector<HostMapping> ranges = joined(mappings);
  return std::any_of(ranges.begin(), ranges.end(), [&](const HostMapping& m) {
    return at >= m.begin && at < m.end && m.end - at >= size;
  });
}

}  // namespace citcat
