// The things to change where a replay differs from the bus: registers, and page-table entries that
// the processor had in its TLB.

#include <algorithm>
#include <set>

#include "replay/infer/registers/protected_search.h"

namespace citcat {

/// What the replay accessed at one linear address the bus shows at another: registers that are out
/// by the difference.
void ProtectedRecovery::guess_addresses(const RecoveryOutcome& now, std::vector<Guess>& out) {
  std::set<std::uint64_t> differences;
  for (const PhysAddr at : now.shown) {
    for (const LinearAddr linear : now.pages.linear_of(at)) {
      for (const LinearAddr found : now.addresses)
        differences.insert(cut(linear.value - found.value));
    }
  }
  differences.erase(0);
  for (const std::uint64_t by : differences) {
    for (ProtectedUnknown& u : unknown_) {
      if (!u.is_open()) continue;
      ProtectedUnknown with = u;
      if (u.kind == ProtectedUnknown::Kind::segment) {
        if (entry_.long_mode) continue;
        with.base = segment_of(u).base + static_cast<std::uint32_t>(by);
        with.has_base = true;
      } else {
        with.value = cut(u.value + by);
      }
      out.push_back({&u, with});
    }
  }
}

/// The value stored is a register plus something.
void ProtectedRecovery::guess_values(const RecoveryOutcome& now, std::vector<Guess>& out) {
  const BusOrderCheck::Difference& d = *now.difference;
  if (d.expected.address != d.found.address) return;
  const auto by = static_cast<std::uint64_t>(d.expected.value - d.found.value);
  const unsigned bits = entry_.long_mode ? 64 : 32;
  for (ProtectedUnknown& u : unknown_) {
    if (u.source == RegisterSource::saved) continue;
    if (u.kind == ProtectedUnknown::Kind::segment && !u.is_open() && !u.wants_selector()) continue;
    for (unsigned shift = 0; shift < bits; shift += 8) {
      for (const std::uint64_t change : {by << shift, ~(by << shift) + 1}) {
        ProtectedUnknown with = u;
        with.value = cut(u.value + change);
        out.push_back({&u, with});
      }
    }
  }
}

/// A segment of the global table. In long mode none of those left has any effect.
void ProtectedRecovery::guess_segments(std::vector<Guess>& out) {
  if (entry_.long_mode) return;
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
/// 7-2; in long mode RSP, or one of the interrupt stack table, figure 7-11), and for the port
/// permission map, whose offset is at 102.
void ProtectedRecovery::guess_task(const RecoveryOutcome& now, std::vector<Guess>& out) {
  std::vector<std::uint32_t> offsets{4, 8, 12, 16, 102};
  if (entry_.long_mode) offsets = {4, 12, 20, 36, 44, 52, 60, 68, 76, 84, 102};
  for (ProtectedUnknown& u : unknown_) {
    if (!u.is_open() || u.kind != ProtectedUnknown::Kind::task) continue;
    for (const PhysAddr at : now.shown) {
      for (const LinearAddr linear : now.pages.linear_of(at)) {
        for (const std::uint32_t offset : offsets) {
          ProtectedUnknown with = u;
          with.value = cut(linear.value - offset);
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

/// Where SYSENTER or SYSCALL goes: to an address that the bus fetches as a whole, as compilers
/// align entries.
void ProtectedRecovery::guess_system_call(const RecoveryOutcome& now, std::vector<Guess>& out) {
  for (ProtectedUnknown& u : unknown_) {
    const bool is_entry = u.number == kSysenterEip || u.number == kLongTarget;
    if (!u.is_open() || u.kind != ProtectedUnknown::Kind::msr || !is_entry) continue;
    for (const PhysAddr fetch : fetches_near(now.last_agreed)) {
      for (const LinearAddr linear : now.pages.linear_of(fetch)) {
        ProtectedUnknown with = u;
        with.value = linear.value;
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

/// With another value the replay leaves the bus elsewhere, or accesses something else there.
bool ProtectedRecovery::changes(ProtectedUnknown& u, const RecoveryOutcome& now) {
  const ProtectedUnknown before = u;
  u.value ^= kOtherValue;
  const RecoveryOutcome other = replay();
  u = before;
  return !other.same(now) || other.addresses != now.addresses;
}

/// In long mode there are many general registers, and values of 8 bytes to try: only those are
/// tried on which the difference depends.
std::vector<ProtectedRecovery::Guess> ProtectedRecovery::likely_guesses(
    const RecoveryOutcome& now) {
  std::vector<Guess> all = guesses(now);
  if (!entry_.long_mode) return all;
  std::map<const ProtectedUnknown*, bool> depends;
  for (const Guess& guess : all) {
    const auto [it, is_new] = depends.emplace(guess.unknown, true);
    const bool is_general = guess.unknown->kind == ProtectedUnknown::Kind::general;
    if (is_new && is_general) it->second = changes(*guess.unknown, now);
  }
  std::erase_if(all, [&](const Guess& guess) { return !depends.at(guess.unknown); });
  return all;
}

std::optional<PageEntry> ProtectedRecovery::known_entry(PhysAddr at) const {
  return PageMap::entry(tables_, at,
                        [this](PhysAddr a) { return known_dword(recording_.image, a); });
}

/// The entry of this level in another address space that has the page there.
std::optional<PageEntry> ProtectedRecovery::shared_entry(unsigned level, AddressSpaceId cr3,
                                                         LinearAddr page, PhysAddr lies_at) const {
  const auto read = [this](PhysAddr at) { return known_dword(recording_.image, at); };
  for (const AddressSpace& other : spaces_) {
    if (!other.paging || other.cr3 == PhysAddr{cr3}.page_begin().value) continue;
    const auto there = PageMap::translate(tables_, other.cr3, page, read);
    if (!there || there->page() != lies_at.page()) continue;
    PhysAddr table{other.cr3};
    for (unsigned above = tables_.levels; above > level; --above) {
      table = known_entry(tables_.entry_at(above, table, page))->address();
    }
    return known_entry(tables_.entry_at(level, table, page));
  }
  return std::nullopt;
}

/// What an entry that is not known must be if `page` is mapped to where `lies_at` is.
void ProtectedRecovery::guess_entry(AddressSpaceId cr3, LinearAddr page, PhysAddr lies_at,
                                    std::vector<TableEntry>& out) const {
  // Present, writable, accessed, dirty: what the processor had used (SDM vol. 3, table 4-6). In
  // long mode the lower half of addresses is the users'.
  const bool is_users = entry_.long_mode && page.value >> 63 == 0;
  const std::uint64_t used = is_users ? 0x67 : 0x63, large = 0x80;
  PhysAddr table{cr3}, at;
  unsigned level = tables_.levels;
  for (;; --level) {
    at = tables_.entry_at(level, table, page);
    const auto known = known_entry(at);
    if (!known) break;
    const bool is_last = level == 1 || (tables_.may_be_large(level) && known->is_large());
    if (!known->is_present() || is_last) return;
    table = known->address();
  }
  const auto add = [&](std::uint64_t value) { out.push_back({at, value, tables_.entry_bytes}); };
  const PhysAddr page_at = lies_at.page_begin();
  if (level == 1) return add(page_at.value | used);
  // Address spaces of one system share what is not a single process's.
  if (const auto entry = shared_entry(level, cr3, page, lies_at)) add(entry->value);
  if (!tables_.may_be_large(level)) return;
  const std::uint32_t bytes = 1u << tables_.shift(level);
  const std::uint32_t apart = page.offset_in(bytes) ^ lies_at.offset_in(bytes);
  if ((apart & ~kPageMask) == 0) add(page_at.begin_of(bytes).value | used | large);
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
  const auto data = entry.data();
  for (unsigned i = 0; i < entry.bytes; ++i) recording_.image.set(entry.at.plus32(i), data[i]);
}

/// The entry of the directory `cr3` for an address of the system's, from another address space that
/// has it, if it is not known. False when it is, or no other has it.
bool ProtectedRecovery::supply_shared(AddressSpaceId cr3, LinearAddr linear) {
  const PhysAddr at = tables_.entry_at(tables_.levels, PhysAddr{cr3}, linear);
  if (!space_.paging || known_entry(at)) return false;
  for (const AddressSpace& other : spaces_) {
    if (!other.paging) continue;
    const auto entry = known_entry(PhysAddr{other.cr3}.plus32(at.offset_in_page()));
    if (!entry || !entry->is_present()) continue;
    supply({at, entry->value, tables_.entry_bytes});
    return true;
  }
  return false;
}

/// What the bus shows next lies nowhere in this address space, but it does in the first.
bool ProtectedRecovery::share_entries(const RecoveryOutcome& now) {
  if (!now.page_fault || PhysAddr{now.cr3}.page() == PhysAddr{space_.cr3}.page()) return false;
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
  supply_shared(space_.cr3, LinearAddr{entry_.handler_ip});
  if (!entry_.changes_level()) supply_shared(space_.cr3, LinearAddr{entry_.ip});
  const auto read = [&](PhysAddr at) { return known_dword(recording_.image, at); };
  std::vector<PhysAddr> used{entry_.gate, entry_.code_descriptor, entry_.frame};
  if (entry_.task_stack) used.push_back(entry_.task_stack->at);
  for (const AddressSpace& other : spaces_) {
    if (!other.paging || other.cr3 == space_.cr3) continue;
    const PageMap pages(tables_, other.cr3, read);
    for (const PhysAddr at : used) {
      for (const LinearAddr linear : pages.linear_of(at)) supply_shared(space_.cr3, linear);
    }
  }
}

}  // namespace citcat
