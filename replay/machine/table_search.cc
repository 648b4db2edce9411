#include "replay/machine/table_search.h"

#include <cstring>
#include <memory>

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

std::vector<PhysAddr> tables_of_held_pages(const Machine& machine) {
  constexpr std::uint32_t kPaeOfCr4 = 0x20;
  std::vector<PhysAddr> tables;
  const Engine& engine = machine.engine();
  const Memory& memory = machine.memory();
  if (!machine.mmu().paging() || (engine.efer() & kLongModeActive) != 0) return tables;
  const bool pae = (engine.cr(4) & kPaeOfCr4) != 0;
  const std::uint32_t size = pae ? kEntryBytes : 4;
  const std::shared_ptr<const Mmu::State> held = machine.mmu().save();
  for (const auto* const entries : {&held->itlb, &held->dtlb}) {
    for (const Tlb::Entry& page : *entries) {
      if ((page.tag & Tlb::kInvalid) != 0) continue;
      const auto linear = static_cast<std::uint32_t>(page.tag);
      const std::uint64_t directory =
          pae ? held->pdptes[linear >> 30].value_or(0) : engine.cr(3) & ~kPageMask;
      const std::uint32_t number = pae ? linear >> 21 & (kEntries - 1) : linear >> 22;
      const PhysAddr at = PhysAddr{directory & kFrameOfEntry}.plus32(number * size);
      if (!memory.is_mapped(at.page()) || !memory.is_defined(at, size)) continue;
      std::uint64_t entry = 0;
      std::memcpy(&entry, memory.host(at), size);
      if (const auto table = named_by(entry, kLastLevel)) tables.push_back(memory.captured(*table));
    }
  }
  return tables;
}

bool names_table(const Machine& machine, FrameNumber page) {
  const Engine& engine = machine.engine();
  if (!machine.mmu().paging() || (engine.efer() & kLongModeActive) == 0) return false;
  const PhysAddr top{engine.wide().cr(3) & kFrameOfEntry};
  return table_names(machine, top, 0, page);
}

}  // namespace citcat
