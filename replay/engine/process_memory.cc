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

bool lies_in(const std::vector<HostMapping>& mappings, std::uintptr_t at, std::size_t size) {
  const auto first = std::find_if(mappings.begin(), mappings.end(), [&](const HostMapping& m) {
    return at >= m.begin && at < m.end;
  });
  if (first == mappings.end()) return false;
  std::uintptr_t end = first->end;
  for (auto m = first + 1; m != mappings.end() && m->begin == end; ++m) end = m->end;
  return end - at >= size;
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
