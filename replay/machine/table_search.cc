#include "replay/machine/table_search.h"

#include <cstring>

#include "replay/machine/machine.h"

namespace citcat {

namespace {

// Intel SDM vol. 3, 4.5: entries of all levels have eight bytes, and say below the first one
// whether they map a page.
constexpr unsigned kLastLevel = 2;  ///< whose entries name tables, from 0 at the top
constexpr std::uint32_t kEntries = 512, kEntryBytes = 8, kPresentBit = 1, kEntryLarge = 0x80;
constexpr std::uint64_t kFrameOfEntry = 0x000ffffffffff000, kLongModeActive = 0x400;

/// The table that an entry of this level names, if it names one.
std::optional<PhysAddr> named_by(std::uint64_t entry, unsigned level) {
  const bool maps_page = level != 0 && (entry & kEntryLarge) != 0;
  if ((entry & kPresentBit) == 0 || maps_page) return std::nullopt;
  return PhysAddr{entry & kFrameOfEntry};
}

bool table_names(const Machine& machine, PhysAddr table, unsigned level, FrameNumber page) {
  const Memory& memory = machine.memory();
  if (!memory.is_mapped(table.page())) return false;
  for (std::uint32_t n = 0; n < kEntries; ++n) {
    const PhysAddr at = table.plus32(kEntryBytes * n);
    std::uint64_t entry = 0;
    std::memcpy(&entry, memory.host(at), kEntryBytes);
    const auto below = named_by(entry, level);
    if (!below || !memory.is_defined(at, kEntryBytes)) continue;
    if (memory.captured(*below).page() == page) return true;
    if (level < kLastLevel && table_names(machine, *below, level + 1, page)) return true;
  }
  return false;
}

}  // namespace

bool names_table(const Machine& machine, FrameNumber page) {
  const Engine& engine = machine.engine();
  if (!machine.mmu().paging() || (engine.efer() & kLongModeActive) == 0) return false;
  const PhysAddr top{engine.wide().cr(3) & kFrameOfEntry};
  return table_names(machine, top, 0, page);
}

}  // namespace citcat
