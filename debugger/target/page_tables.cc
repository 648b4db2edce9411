#include "debugger/target/page_tables.h"

#include <cstring>

namespace citcat {
namespace {

constexpr std::uint64_t kPresent = 1, kLarge = 0x80;
constexpr unsigned kPageShift = 12;
/// The address bits of an entry of eight bytes.
constexpr std::uint64_t kEntryAddress = 0x000ffffffffff000;

std::uint64_t value_of(const CpuState& cpu, const char* name) {
  return get_register(cpu, name).value_or(0);
}

}  // namespace

PageTables::PageTables(const CpuState& cpu)
    : paging_((value_of(cpu, "cr0") >> 31 & 1) != 0),
      large_pages_((value_of(cpu, "cr4") >> 4 & 1) != 0),
      pae_((value_of(cpu, "cr4") >> 5 & 1) != 0),
      long_mode_((value_of(cpu, "efer") >> 10 & 1) != 0),
      root_(value_of(cpu, "cr3")) {}

PageTables::Walk PageTables::walk(const Memory& memory, LinearAddr address) const {
  if (!paging_) return {true, PhysAddr{address.value}};
  const bool wide = pae_ || long_mode_;
  const std::uint32_t bytes = wide ? 8 : 4;
  const unsigned bits = wide ? 9 : 10;
  std::uint64_t table = root_ & (long_mode_ ? kEntryAddress : wide ? ~0x1full : ~0xfffull);
  // PAE has four pointers at the highest of three levels.
  for (unsigned level = long_mode_ ? 3 : wide ? 2 : 1;; --level) {
    const unsigned shift = kPageShift + bits * level;
    const PhysAddr at{table + (address.value >> shift & ((1u << bits) - 1)) * bytes};
    const bool known = memory.is_mapped(at.page()) && memory.is_defined(at, bytes);
    std::uint64_t entry = 0;
    if (known) std::memcpy(&entry, memory.host(at), bytes);
    if ((entry & kPresent) == 0) return {false, at, bytes, known};
    table = wide ? entry & kEntryAddress : entry & ~std::uint64_t{0xfff};
    const bool may_be_large = level == 1 ? wide || large_pages_ : level == 2 && long_mode_;
    if (level == 0 || (may_be_large && (entry & kLarge) != 0)) {
      const std::uint64_t within = (std::uint64_t{1} << shift) - 1;
      return {true, PhysAddr{(table & ~within) | (address.value & within)}};
    }
  }
}

}  // namespace citcat
