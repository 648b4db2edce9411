#include "replay/engine/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
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

bool copy_memory(std::uintptr_t at, std::span<char> to) {
  const iovec local{to.data(), to.size()};
  const iovec remote{reinterpret_cast<void*>(at), to.size()};
  const ssize_t copied = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(to.size())) return true;
  if (copied >= 0 || errno == EFAULT) return false;
  // Refused to all processes, as some containers do: then only the mappings tell.
  if (!lies_in(host_mappings("r"), at, to.size())) return false;
  std::memcpy(to.data(), reinterpret_cast<const void*>(at), to.size());
  return true;
}

}  // namespace citcat
