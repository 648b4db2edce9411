#include "replay/infer/registers/address_space.h"

#include <algorithm>
#include <optional>
#include <set>

#include "replay/infer/registers/table_walk.h"

namespace citcat {
namespace {

/// Frames of page directories, with the transaction that shows each first: an entry is read, and
/// next those of tables that it leads to. A walk of four levels may end at the third.
std::map<FrameNumber, std::uint64_t> walked_directories(const Recording& recording,
                                                        EvidenceReader& evidence,
                                                        const PageTables& tables) {
  std::map<FrameNumber, std::uint64_t> directories;
  TableWalk walk(tables, recording.image);
  for (BusTransaction t; evidence.next(t);) {
    walk.take(t);
    if (walk.entries().size() <= tables.levels / 2) continue;
    directories.emplace(walk.entries().front().page(), walk.begin());
  }
  return directories;
}

}  // namespace

std::vector<AddressSpace> find_address_spaces(const Recording& recording,
                                              const EvidenceSource& evidence,
                                              const ProtectedEntry& entry) {
  std::vector<AddressSpace> spaces;
  const PageTables tables = tables_of(entry);
  const auto read = [&](PhysAddr at) { return known_dword(recording.image, at); };
  // The bus may fetch more than the first byte, from an aligned address.
  const auto fits = [&](PhysAddr at) {
    return at.is_within32(entry.handler, recording.bus.bus_bytes);
  };
  const LinearAddr handler{entry.handler_ip};
  const std::map<FrameNumber, std::uint64_t> walked =
      walked_directories(recording, *evidence(), tables);
  std::set<FrameNumber> frames;
  for (const auto& [number, page] : recording.image.pages()) frames.insert(number);
  for (const auto& [number, when] : walked) frames.insert(number);
  for (const FrameNumber number : frames) {
    const AddressSpaceId cr3 = number * kPageSize;
    const auto at = PageMap::translate(tables, cr3, handler, read);
    const PhysAddr directory = tables.entry_at(tables.levels, PhysAddr{cr3}, handler);
    const bool may = walked.count(number) != 0 && !PageMap::entry(tables, directory, read);
    if (at ? fits(*at) : may) spaces.push_back({true, cr3});
  }
  const auto when = [&](const AddressSpace& s) {
    const auto it = walked.find(s.cr3 / kPageSize);
    return it == walked.end() ? ~std::uint64_t{0} : it->second;
  };
  std::stable_sort(spaces.begin(), spaces.end(),
                   [&](const auto& a, const auto& b) { return when(a) < when(b); });
  if (!entry.long_mode && fits(PhysAddr{entry.handler_ip})) spaces.push_back({false, 0});
  return spaces;
}

std::map<std::uint64_t, std::uint64_t> walked_pages(const Recording& recording,
                                                    EvidenceReader& evidence,
                                                    const PageTables& tables,
                                                    const std::vector<AddressSpace>& spaces) {
  std::map<std::uint64_t, std::uint64_t> pages;
  std::set<FrameNumber> directories;
  for (const AddressSpace& space : spaces) {
    if (space.paging) directories.insert(space.cr3 / kPageSize);
  }
  TableWalk walk(tables, recording.image);
  for (BusTransaction t; evidence.next(t);) {
    const std::vector<PhysAddr>& entries = walk.entries();
    const bool known = !entries.empty() && directories.count(entries.front().page()) != 0;
    const auto page = known && !walk.is_update(t) ? walk.page(t.address) : std::nullopt;
    if (page) pages.emplace(t.address.value, *page);
    walk.take(t);
  }
  return pages;
}

}  // namespace citcat
