#include "replay/machine/units/system_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace citcat {

std::uint32_t SystemMemory::read(std::uint32_t linear, std::uint32_t size) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < size;) {
    const std::uint32_t n = std::min(size - i, kPageSize - ((linear + i) & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear + i}, Access::read, false);
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, n)) {
      throw UndefinedMemory{at, n, "descriptor table, task segment or interrupt vector"};
    }
    std::memcpy(reinterpret_cast<std::uint8_t*>(&value) + i, cpu_.memory.host(at), n);
    if (cpu_.wants_reads) cpu_.audience.read(at, n, AccessKind::system, cpu_.position);
    i += n;
  }
  return value;
}

void SystemMemory::write(std::uint32_t linear, std::uint32_t value, std::uint32_t size, bool user) {
  std::array<std::uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &value, 4);
  for (std::uint32_t i = 0; i < size;) {
    const std::uint32_t n = std::min(size - i, kPageSize - ((linear + i) & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear + i}, Access::write, user);
    cpu_.memory.store(at, std::span(bytes).subspan(i, n));
    cpu_.audience.write(at, std::span(bytes).subspan(i, n), AccessKind::system, cpu_.position);
    i += n;
  }
}

void SystemMemory::page_in(std::uint32_t first, std::uint32_t last, Access access) {
  cpu_.mmu.translate(LinearAddr{first}, access, false);
  const std::uint32_t last_page = last & ~kPageMask;
  if (last_page != (first & ~kPageMask)) cpu_.mmu.translate(LinearAddr{last_page}, access, false);
}

}  // namespace citcat
