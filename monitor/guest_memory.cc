#include "monitor/guest_memory.h"

#include <sys/mman.h>

#include <cstdio>

namespace citcat::monitor {

bool GuestMemory::find(const std::string& backend_name) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char line[1024];
  int found = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (std::strstr(line, backend_name.c_str()) == nullptr ||
        std::sscanf(line, "%lx-%lx", &begin, &end) != 2)
      continue;
    ++found;
    ram_ = reinterpret_cast<std::uint8_t*>(begin);
    bytes_ = static_cast<std::uint32_t>(end - begin);
  }
  std::fclose(maps);
  return found == 1;
}

bool GuestMemory::snapshot() {
  if (shadow_ == nullptr) {
    void* const p =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    shadow_ = static_cast<std::uint8_t*>(p);
  }
  take(0, bytes_);
  return true;
}

}  // namespace citcat::monitor
