// What may be changed where a replay leaves the bus: registers, and page-table entries that the
// processor had in its TLB.

#include <algorithm>
#include <set>
#include <utility>

#include "replay/infer/protected_search.h"

namespace citcat {

/// What the replay accessed at one linear address the bus shows at another: registers that are out
/// by the difference.
void ProtectedRecovery::guess_addresses(const RecoveryOutcome& now, std::vector<Guess>& out) {
  std::set<std::uint32_t> differences;
  for (const PhysAddr at : now.shown) {
    for (const LinearAddr linear : now.pages.linear_of(at)) {
      for (const LinearAddr found : now.addresses) differences.insert(linear.minus32(found));
    }
  }
  differences.erase(0);
  for (const std::uint32_t by : differences) {
    for (ProtectedUnknown& u : unknown_) {
      if (!u.is_open()) continue;
      ProtectedUnknown with = u;
      if (u.kind == ProtectedUnknown::Kind::segment) {
        with.base = segment_of(u).base + by;
        with.has_base = true;
      } else {
        with.value += by;
      }
      out.push_back({&u, with});
    }
  }
}

/// The value stored is a register plus something.
void ProtectedRecovery::guess_values(const RecoveryOutcome& now, std::vector<Guess>& out) {
  const BusOrderCheck::Difference& d = *now.difference;
  if (d.expected.address != d.found.address) return;
  const auto by = static_cast<std::uint32_t>(d.expected.value - d.found.value);
  for (ProtectedUnknown& u : unknown_) {
    if (u.source == RegisterSource::saved) continue;
    if (u.kind == ProtectedUnknown::Kind::segment && !u.is_open() && !u.wants_selector()) continue;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      for (const std::uint32_t change : {by << shift, ~(by << shift) + 1}) {
        ProtectedUnknown with = u;
        with.value += change;
        out.push_back({&u, with});
      }
    }
  }
}

/// A segment of the global table.
void ProtectedRecovery::guess_segments(std::vector<Guess>& out) {
  const std::uint32_t level = entry_.cs & 3u;
  for (ProtectedUnknown& u : unknown_) {
    if (!u.is_open() || u.kind != ProtectedUnknown::Kind::segment) continue;
    for (std::uint32_t selector = 8; selector < kPageSize; selector += 8) {
      const auto s = descriptor(static_cast<std::uint16_t>(selector | level));
      constexpr std::uint16_t kCode = 8, kLevel = 0x60;
      if (!s || (s->attributes & kCode) != 0) continue;
      ProtectedUnknown with = u;
      with.value = selector | (s->attributes & kLevel) >> 5;
      with.has_base = false;
      out.push_back({&u, with});
    }
  }
}

/// The task segment is read for the stack of an inner level (its ESP and SS, SDM vol. 3, figure
/// 7-2), and for the port permission map, whose offset is at 102.
void ProtectedRecovery::guess_task(const RecoveryOutcome& now, std::vector<Guess>& out) {
  for (ProtectedUnknown& u : unknown_) {
    if (!u.is_open() || u.kind != ProtectedUnknown::Kind::task) continue;
    for (const PhysAddr at : now.shown) {
      for (const LinearAddr linear : now.pages.linear_of(at)) {
        for (const std::uint32_t offset : {4u, 8u, 12u, 16u, 102u}) {
          ProtectedUnknown with = u;
          with.value = linear.low32() - offset;
          out.push_back({&u, with});
        }
      }
    }
  }
}

/// Addresses of code fetched about when the replay left the bus, where it was not fetched in order.
std::vector<PhysAddr> ProtectedRecovery::fetches_near(std::uint64_t transaction) const {
  constexpr std::uint64_t kAround = 32;
  std::vector<PhysAddr> fetched;
  PhysAddr next;
  const auto evidence = evidence_();
  for (BusTransaction t; evidence->next(t) && t.index <= transaction + kAround;) {
    if (t.op != BusOp::code_read) continue;
    const bool near = t.index + kAround >= transaction;
    if (near && t.address != next) fetched.push_back(t.address);
    next = t.address.plus32(t.size);
  }
  return fetched;
}

/// Where SYSENTER goes: to an address that the bus fetches as a whole, as compilers align entries.
void ProtectedRecovery::guess_system_call(const RecoveryOutcome& now, std::vector<Guess>& out) {
  for (ProtectedUnknown& u : unknown_) {
    if (!u.is_open() || u.kind != ProtectedUnknown::Kind::msr || u.number != kSysenterEip) continue;
    for (const PhysAddr fetch : fetches_near(now.last_agreed)) {
      for (const LinearAddr linear : now.pages.linear_of(fetch)) {
        ProtectedUnknown with = u;
        with.value = linear.low32();
        out.push_back({&u, with});
      }
    }
  }
}

std::vector<ProtectedRecovery::Guess> ProtectedRecovery::guesses(const RecoveryOutcome& now) {
  std::vector<Guess> all;
  guess_addresses(now, all);
  guess_values(now, all);
  guess_segments(all);
  guess_task(now, all);
  guess_system_call(now, all);
  return all;
}

/// What an entry that is not known must be if `page` is mapped to where `lies_at` is.
void ProtectedRecovery::guess_entry(std::uint32_t cr3, LinearAddr page, PhysAddr lies_at,
                                    std::vector<TableEntry>& out) const {
  constexpr std::uint32_t kPresent = 1, kLarge = 0x80, kLargeFrame = 0xffc00000;
  // Present, writable, accessed, dirty: what the processor had used (SDM vol. 3, table 4-6).
  constexpr std::uint32_t kUsed = 0x63;
  const MemoryImage& image = recording_.image;
  const PhysAddr directory{(cr3 & ~kPageMask) + (page.low32() >> 20 & 0xffc)};
  const auto known = known_dword(image, directory);
  if (known) {
    if ((*known & kPresent) == 0 || (*known & kLarge) != 0) return;
    const PhysAddr table{(*known & ~kPageMask) + (page.low32() >> 10 & 0xffc)};
    if (!known_dword(image, table)) out.push_back({table, lies_at.page_begin().low32() | kUsed});
    return;
  }
  // Address spaces of one system share what is not a single process's.
  const auto read = [&](PhysAddr at) { return known_dword(image, at); };
  for (const AddressSpace& other : spaces_) {
    if (!other.paging || other.cr3 == cr3) continue;
    const auto there = PageMap::translate(other.cr3, page, read);
    const auto entry = read(PhysAddr{other.cr3 + directory.offset_in_page()});
    if (there && entry && there->page() == lies_at.page()) out.push_back({directory, *entry});
  }
  if (((page.low32() ^ lies_at.low32()) & ~kLargeFrame & ~kPageMask) == 0) {
    out.push_back({directory, (lies_at.low32() & kLargeFrame) | kUsed | kLarge});
  }
}

/// The replay faulted where the processor did not: the bus shows where the page lies.
std::vector<TableEntry> ProtectedRecovery::missing_entries(const RecoveryOutcome& now) const {
  std::vector<TableEntry> entries;
  if (!now.page_fault || !now.difference || !space_.paging) return entries;
  std::vector<PhysAddr> shown = fetches_near(now.last_agreed);
  shown.insert(shown.begin(), now.shown.begin(), now.shown.end());
  for (const PhysAddr at : shown) {
    // Code is fetched from aligned addresses.
    const std::uint32_t apart = now.page_fault->offset_in_page() ^ at.offset_in_page();
    if (apart >= recording_.bus.bus_bytes) continue;
    guess_entry(now.cr3, *now.page_fault, at, entries);
  }
  return entries;
}

bool ProtectedRecovery::supply_entry(const RecoveryOutcome& now) {
  for (const TableEntry& entry : missing_entries(now)) {
    tried_ = entry;
    const RecoveryOutcome outcome = replay();
    tried_.reset();
    if (outcome.agreed <= now.agreed) continue;
    supply(entry);
    return true;
  }
  return false;
}

void ProtectedRecovery::supply(const TableEntry& entry) {
  supplied_.push_back(entry);
  for (std::uint32_t i = 0; i < 4; ++i) {
    recording_.image.set(entry.at.plus32(i), static_cast<std::uint8_t>(entry.value >> (8 * i)));
  }
}

/// The entry of the directory `cr3` for an address of the system's, from another address space that
/// has it, if it is not known. False when it is, or no other has it.
bool ProtectedRecovery::supply_shared(std::uint32_t cr3, LinearAddr linear) {
  const std::uint32_t offset = linear.low32() >> 20 & 0xffc;
  const PhysAddr at{(cr3 & ~kPageMask) + offset};
  if (!space_.paging || known_dword(recording_.image, at)) return false;
  for (const AddressSpace& other : spaces_) {
    if (!other.paging) continue;
    const auto entry = known_dword(recording_.image, PhysAddr{other.cr3 + offset});
    if (!entry || (*entry & 1) == 0) continue;
    supply({at, *entry});
    return true;
  }
  return false;
}

/// What the bus shows next lies nowhere in this address space, but it does in the first.
bool ProtectedRecovery::share_entries(const RecoveryOutcome& now) {
  if (!now.page_fault || now.cr3 == space_.cr3) return false;
  for (const PhysAddr at : now.shown) {
    if (!now.pages.linear_of(at).empty()) continue;
    for (const LinearAddr linear : pages_.linear_of(at)) {
      if (supply_shared(now.cr3, linear)) return true;
    }
  }
  return false;
}

/// Those for all that the interrupt used, as the other address spaces have them.
void ProtectedRecovery::supply_entry_pages() {
  supply_shared(space_.cr3, LinearAddr{entry_.handler_eip});
  if (!entry_.stack) supply_shared(space_.cr3, LinearAddr{entry_.eip});
  const auto read = [&](PhysAddr at) { return known_dword(recording_.image, at); };
  std::vector<PhysAddr> used{entry_.gate, entry_.code_descriptor, entry_.frame};
  if (entry_.stack) used.push_back(entry_.stack->in_task);
  for (const AddressSpace& other : spaces_) {
    if (!other.paging || other.cr3 == space_.cr3) continue;
    const PageMap pages(other.cr3, read);
    for (const PhysAddr at : used) {
      for (const LinearAddr linear : pages.linear_of(at)) supply_shared(space_.cr3, linear);
    }
  }
}

}  // namespace citcat
