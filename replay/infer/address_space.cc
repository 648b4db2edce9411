#include "replay/infer/address_space.h"

#include <algorithm>
#include <optional>
#include <set>

#include "replay/infer/page_map.h"

namespace citcat {
namespace {

/// Frames of page directories, with the transaction that shows each first: an entry is read, and
/// next one of the table that it names.
std::map<std::uint32_t, std::uint64_t> walked_directories(const Recording& recording,
                                                          EvidenceReader& evidence) {
  std::map<std::uint32_t, std::uint64_t> directories;
  constexpr std::uint32_t kPresent = 1, kLarge = 0x80;
  BusTransaction before;
  bool may_be_directory = false;
  for (BusTransaction t; evidence.next(t);) {
    const bool is_entry = t.op == BusOp::data_read && t.size == 4 && t.address.offset_in(4) == 0;
    const auto entry =
        may_be_directory ? known_dword(recording.image, before.address) : std::nullopt;
    const bool walk = is_entry && entry && (*entry & (kPresent | kLarge)) == kPresent &&
                      *entry / kPageSize == t.address.page();
    if (walk) directories.emplace(before.address.page(), before.index);
    may_be_directory = is_entry && !walk;
    before = t;
  }
  return directories;
}

}  // namespace

std::vector<AddressSpace> find_address_spaces(const Recording& recording,
                                              const EvidenceSource& evidence,
                                              const ProtectedEntry& entry) {
  std::vector<AddressSpace> spaces;
  const auto read = [&](PhysAddr at) { return known_dword(recording.image, at); };
  // The bus may fetch more than the first byte, from an aligned address.
  const auto fits = [&](PhysAddr at) {
    return at.is_within32(entry.handler, recording.bus.bus_bytes);
  };
  const LinearAddr handler{entry.handler_eip};
  const std::map<std::uint32_t, std::uint64_t> walked = walked_directories(recording, *evidence());
  std::set<std::uint32_t> frames;
  for (const auto& [number, page] : recording.image.pages()) frames.insert(number);
  for (const auto& [number, when] : walked) frames.insert(number);
  for (const std::uint32_t number : frames) {
    const std::uint32_t cr3 = number * kPageSize;
    const auto at = PageMap::translate(cr3, handler, read);
    const bool may =
        walked.count(number) != 0 && !read(PhysAddr{cr3 + (handler.low32() >> 20 & 0xffc)});
    if (at ? fits(*at) : may) spaces.push_back({true, cr3});
  }
  const auto when = [&](const AddressSpace& s) {
    const auto it = walked.find(s.cr3 / kPageSize);
    return it == walked.end() ? ~std::uint64_t{0} : it->second;
  };
  std::stable_sort(spaces.begin(), spaces.end(),
                   [&](const auto& a, const auto& b) { return when(a) < when(b); });
  if (fits(PhysAddr{entry.handler_eip})) spaces.push_back({false, 0});
  return spaces;
}

std::map<std::uint32_t, std::uint32_t> walked_pages(const Recording& recording,
                                                    EvidenceReader& evidence,
                                                    const std::vector<AddressSpace>& spaces) {
  std::map<std::uint32_t, std::uint32_t> pages;
  constexpr std::uint32_t kNone = ~0u;
  std::uint32_t directory = kNone;  ///< address of the entry that was just read
  std::uint32_t walked = kNone;     ///< page of the walk just completed
  const auto is_directory = [&](PhysAddr at) {
    return std::any_of(spaces.begin(), spaces.end(), [&](const AddressSpace& space) {
      return space.paging && at.page() == space.cr3 / kPageSize;
    });
  };
  for (BusTransaction t; evidence.next(t);) {
    if (walked != kNone) pages.emplace(t.address.low32(), walked);
    const auto entry =
        directory == kNone ? std::nullopt : known_dword(recording.image, PhysAddr{directory});
    const bool is_entry = t.op == BusOp::data_read && t.size == 4;
    const bool walk = is_entry && entry && *entry / kPageSize == t.address.page();
    walked = walk ? (directory & kPageMask) / 4 << 10 | t.address.offset_in_page() / 4 : kNone;
    directory = is_entry && is_directory(t.address) ? t.address.low32() : kNone;
  }
  return pages;
}

}  // namespace citcat
