#include "replay/machine/units/system_memory.h"

#include <algorithm>
#include <cstring>

namespace citcat {

std::uint64_t SystemMemory::read_wide(LinearAddr linear, std::uint32_t size) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < size;) {
    const LinearAddr here = cpu_.onward_in_system(linear, i);
    const std::uint32_t n = std::min(size - i, kPageSize - here.offset_in_page());
    const PhysAddr at = cpu_.mmu.translate(here, Access::read, Who::processor);
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, n)) {
      throw UndefinedMemory{at, n, "descriptor table, task segment or interrupt vector"};
    }
    std::memcpy(reinterpret_cast<std::uint8_t*>(&value) + i, cpu_.memory.host(at), n);
    if (cpu_.wants_reads) cpu_.audience.read(at, n, AccessKind::system, cpu_.position);
    i += n;
  }
  return value;
}

void SystemMemory::page_in(LinearAddr first, LinearAddr last, Access access) {
  cpu_.mmu.translate(first, access, Who::processor);
  const LinearAddr last_page = last.page_begin();
  if (last_page != first.page_begin()) cpu_.mmu.translate(last_page, access, Who::processor);
}

}  // namespace citcat
