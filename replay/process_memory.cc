#include "replay/process_memory.h"

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

bool lies_in(const std::vector<HostMapping>& mappings, std::uintptr_t at, std::size_t size) {
  return std::any_of(mappings.begin(), mappings.end(), [&](const HostMapping& m) {
    return at >= m.begin && at < m.end && m.end - at >= size;
  });
}

}  // namespace citcat
