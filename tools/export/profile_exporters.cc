#include "tools/export/profile_exporters.h"

#include <algorithm>

namespace citcat::tools {

std::vector<std::uint32_t> path_of(const CallPaths& paths, std::uint32_t node) {
  std::vector<std::uint32_t> path;
  for (; node != CallPaths::kRoot; node = paths.nodes()[node].parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<std::uint64_t> inclusive_of(const CallPaths& paths) {
  const auto& nodes = paths.nodes();
  std::vector<std::uint64_t> inclusive(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    inclusive[i] += nodes[i].self;
    if (i != CallPaths::kRoot) inclusive[nodes[i].parent] += inclusive[i];
  }
  return inclusive;
}

}  // namespace citcat::tools
