#include "monitor/bus/bus_model.h"

#include <algorithm>
#include <bit>

namespace citcat::monitor {

/// Whether the emulator may have set this bit for the processor: accessed or dirty in an entry of
/// page tables, accessed or busy in a descriptor.
bool BusModel::may_be_mark(PhysicalAddress address, unsigned bit) const {
  constexpr unsigned kOfEntry = 0x60, kOfDescriptor = 3, kTypeAt = 5;
  return (address % 4 == 0 && (bit & kOfEntry) != 0) ||
         (address % 8 == kTypeAt && (bit & kOfDescriptor) != 0 && holds_descriptor_(address));
}

/// The bus has shown `bytes`: from now on they are what is known there.
void BusModel::note(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  if (!memory_.is_ram(address, static_cast<std::uint32_t>(bytes.size()))) return;
  std::uint8_t* const known = memory_.shadow(address);
  if (are_equal(bytes.data(), known, bytes.size())) return;
  ++external_;
  say_lone_bit(address, bytes, {});
  show_other_master(address, bytes);
  say_left(address, bytes);
  std::copy(bytes.begin(), bytes.end(), known);
}

/// How many bits another bus master has changed, as far as that can be told from the emulator's own
/// stores that are still to be shown.
unsigned BusModel::foreign_bits(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                                Range own) const {
  unsigned bits = 0;
  for (std::uint32_t n = 0; n < bytes.size(); ++n) {
    const PhysicalAddress at = address + n;
    if (own.holds(at) || expected_[0].holds(at) || expected_[1].holds(at) ||
        memory_.is_marked(at - at % 4) || memory_.is_left(at))
      continue;
    bits += static_cast<unsigned>(
        std::popcount(static_cast<unsigned>(bytes[n] ^ *std::as_const(memory_).shadow(at))));
  }
  return bits;
}

/// One bit alone would be taken for one captured wrongly. It is a device's, such as the index of a
/// ring of virtio or the status of a request, and that is said, unless it may be a mark in a page
/// to which no device has written anything else.
void BusModel::say_lone_bit(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                            Range own) {
  constexpr std::uint32_t kPage = 0x1000;
  const PhysicalAddress page = address - address % kPage;
  const unsigned bits = foreign_bits(address, bytes, own);
  if (bits > 1) device_pages_.insert(page);
  if (bits != 1 || !others_.empty()) return;
  std::uint32_t n = 0;
  while (foreign_bits(address + n, bytes.subspan(n, 1), own) == 0) ++n;
  const unsigned changed = bytes[n] ^ *std::as_const(memory_).shadow(address + n);
  const auto writes_more = [&] {
    return device_pages_.contains(page) ||
           (memory_.is_ram(page, kPage) &&
            foreign_bits(page, {memory_.live(page), kPage}, own) > 1);
  };
  if (!may_be_mark(address + n, changed) || writes_more()) sink_.say_left(address + n, bytes[n]);
}

/// Software reads bytes that the emulator has stored differently from a processor: the reads show
/// them like another bus master's doing, and this says whose it is.
void BusModel::say_left(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const PhysicalAddress at = address + n;
    if (bytes[n] != *memory_.shadow(at) && memory_.is_left(at)) sink_.say_left(at, bytes[n]);
  }
}

void BusModel::uncached_read(RecordType type, PhysicalAddress address,
                             std::span<const std::uint8_t> bytes, unsigned flags) {
  note(address, bytes);
  sink_.single(type, address, bytes, with_lock(flags));
}

void BusModel::write_back(std::uint64_t number, unsigned flags) {
  const PhysicalAddress base = number * line_bytes();
  for (unsigned part = 0; part < line_bytes() / 16; ++part)
    sink_.line_part(RecordType::data_write, base + 16 * part,
                    {memory_.shadow(base + 16 * part), 16}, flags | kVictimWriteBack, part);
}

/// Brings a line in. What it holds is the shadow: callers have made that the truth.
void BusModel::fill(Cache& cache, RecordType type, std::uint64_t number, unsigned flags) {
  CacheSet& set = set_in(cache, number);
  const unsigned way = set.find_place();
  if (set.line[way] != kNoLine && set.ways[way].dirty) write_back(set.line[way], 0);
  const bool shared = ask_others(number, (flags & kFillForStore) != 0);
  if (shared && shows_sharing()) flags |= kSharedFill;
  set.line[way] = number;
  set.ways[way] = {false, shared};
  set.use(way);
  const PhysicalAddress base = number * line_bytes();
  for (unsigned part = 0; part < line_bytes() / 16; ++part)
    sink_.line_part(type, base + 16 * part, {memory_.shadow(base + 16 * part), 16}, flags, part);
}

void BusModel::fill_with_code(std::uint64_t number) {
  memory_.note_use(number << kLongShift, GuestMemory::kCode);
  take_from_data(number);
  fill(code_, RecordType::code_read, number, 0);
}

/// A line that the data cache holds modified is written back before code is fetched from it.
void BusModel::take_from_data(std::uint64_t number) {
  CacheSet& owners = set_in(data_, number);
  const unsigned owner = owners.find(number);
  if (owner == kWays || !owners.ways[owner].dirty) return;
  write_back(number, kSnoopWriteBack);
  owners.ways[owner].dirty = false;
}

void BusModel::drop(Cache& cache, std::uint64_t number) {
  CacheSet& set = set_in(cache, number);
  const unsigned way = set.find(number);
  if (way == kWays) return;
  set.line[way] = kNoLine;
  set.ways[way].dirty = false;
}

/// Whether another bus master wrote into a line, beside the bytes that are being accessed now: RAM
/// may be ahead of those. It is ahead, too, of marks in page tables whose walk is still to be
/// shown; should a device have written one, the access that reads it tells.
bool BusModel::changed_outside(std::uint64_t number, PhysicalAddress address,
                               std::span<const std::uint8_t> bytes) {
  const PhysicalAddress base = number * line_bytes();
  if (is_known_but_for(line_at(base), address - base, static_cast<std::uint32_t>(bytes.size()),
                       has_code_cache()))
    return false;
  for (std::uint32_t k = 0; k < line_bytes(); ++k) {
    const PhysicalAddress at = base + k;
    if (at - address < bytes.size() || expected_[0].holds(at) || expected_[1].holds(at)) continue;
    if (*memory_.live(at) != *memory_.shadow(at) && !memory_.is_marked(at - at % 4) &&
        !memory_.is_left(at))
      return true;
  }
  return false;
}

/// A line becomes known as it is, but for marks that are still to be shown. `own`: what the
/// processor itself has stored of it.
void BusModel::take_line(std::uint64_t number, Range own) {
  const PhysicalAddress base = number * line_bytes();
  for (PhysicalAddress at = base; at < base + line_bytes(); at += 4)
    if (!memory_.is_marked(at)) {
      std::array<std::uint8_t, 4> others{};
      for (std::uint32_t k = 0; k < 4; ++k) {
        const bool is_own =
            own.holds(at + k) || expected_[0].holds(at + k) || expected_[1].holds(at + k);
        others[k] = is_own ? *memory_.shadow(at + k) : *memory_.live(at + k);
      }
      show_other_master(at, others);
      for (std::uint32_t k = 0; k < 4; ++k)
        if (!memory_.is_left(at + k)) memory_.take(at + k, 1);
    }
}

void BusModel::cached_read(RecordType type, PhysicalAddress address,
                           std::span<const std::uint8_t> bytes) {
  const bool code = type == RecordType::code_read;
  Cache& cache = cache_for(code);
  const std::uint64_t last = (address + bytes.size() - 1) / line_bytes();
  for (std::uint64_t number = address / line_bytes(); number <= last; ++number) {
    const PhysicalAddress base = number * line_bytes();
    const PhysicalAddress from = std::max(address, base);
    const PhysicalAddress to = std::min(address + bytes.size(), base + line_bytes());
    const auto part = bytes.subspan(from - address, to - from);
    if (is_plain_hit(cache, line_at(base), from, part)) continue;
    if (code) memory_.note_use(base, GuestMemory::kCode);
    const bool same = are_equal(part.data(), memory_.shadow(from), part.size()) &&
                      !changed_outside(number, from, part);
    CacheSet& set = set_in(cache, number);
    const unsigned way = set.find(number);
    if (way < kWays && same) {
      if (locked_ && !code) make_own(number, way);
      set.use(way);
      continue;
    }
    if (!same) {
      // A device wrote into a line that either cache may hold: the snoop wrote it back, then
      // invalidated it.
      const CacheSet& owners = set_in(data_, number);
      const unsigned owner = owners.find(number);
      if (owner < kWays && owners.ways[owner].dirty) write_back(number, kSnoopWriteBack);
      drop(data_, number);
      drop(code_, number);
      ++external_;
      (void)ask_others(number, true);
      say_lone_bit(number * line_bytes(), {memory_.live(number * line_bytes()), line_bytes()}, {});
      take_line(number, {});
      show_other_master(from, part);
      say_left(from, part);
      std::copy(part.begin(), part.end(), memory_.shadow(from));
    }
    if (code && has_code_cache()) take_from_data(number);
    if (cache_disabled_) {
      (void)ask_others(number, locked_);
      sink_.single(type, from, part, with_lock(0));
    } else {
      fill(cache, type, number,
           locked_ && writes_back() ? static_cast<unsigned>(kFillForStore) : 0);
    }
  }
}

void BusModel::read(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  if (cacheable(address, static_cast<std::uint32_t>(bytes.size())))
    cached_read(RecordType::data_read, address, bytes);
  else
    uncached_read(RecordType::data_read, address, bytes,
                  model_ == CacheModel::none ? 0 : static_cast<unsigned>(kUncached));
}

/// A store within one line of a write-back cache.
void BusModel::write_allocate(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  const std::uint64_t number = address / line_bytes();
  CacheSet& set = set_in(data_, number);
  unsigned way = set.find(number);
  if (changed_outside(number, address, bytes)) {
    if (way < kWays && set.ways[way].dirty) write_back(number, kSnoopWriteBack);
    drop(data_, number);
    way = kWays;
    ++external_;
    (void)ask_others(number, true);
    std::array<std::uint8_t, 32> before{};
    std::copy_n(memory_.shadow(address), bytes.size(), before.begin());
    const Range own{address, static_cast<std::uint32_t>(bytes.size())};
    say_lone_bit(number * line_bytes(), {memory_.live(number * line_bytes()), line_bytes()}, own);
    take_line(number, own);
    std::copy_n(before.begin(), bytes.size(), memory_.shadow(address));
  }
  drop(code_, number);
  if (way == kWays && cache_disabled_) {
    (void)ask_others(number, true);
    sink_.single(RecordType::data_write, address, bytes, with_lock(0));
    std::copy(bytes.begin(), bytes.end(), memory_.shadow(address));
    return;
  }
  if (way == kWays) {
    fill(data_, RecordType::data_read, number, kFillForStore);
    way = set.find(number);
  } else {
    make_own(number, way);
    set.use(way);
  }
  set.ways[way].dirty = true;
  std::copy(bytes.begin(), bytes.end(), memory_.shadow(address));
}

void BusModel::write(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (memory_.is_ram(address, size)) memory_.note_store(memory_.live(address));
  if (fetched_dword_ - address < size || address - fetched_dword_ < 4) fetched_dword_ = kNoLine;
  if (cacheable(address, size) && writes_back()) {
    while (!bytes.empty()) {
      const std::size_t room = line_bytes() - address % line_bytes();
      const auto part = bytes.first(std::min(room, bytes.size()));
      write_allocate(address, part);
      address += part.size();
      bytes = bytes.subspan(part.size());
    }
    return;
  }
  const bool uncached = model_ != CacheModel::none && !cacheable(address, size);
  take_from_others(address, size);
  sink_.single(RecordType::data_write, address, bytes,
               with_lock(uncached ? static_cast<unsigned>(kUncached) : 0));
  if (memory_.is_ram(address, size)) std::copy(bytes.begin(), bytes.end(), memory_.shadow(address));
}

/// Aligned dwords through a buffer of one dword.
void BusModel::fetch_uncached(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                              bool sequential) {
  if (!sequential) fetched_dword_ = kNoLine;
  const unsigned flags = model_ == CacheModel::none ? 0 : static_cast<unsigned>(kUncached);
  while (!bytes.empty()) {
    const PhysicalAddress from = address, dword = from - from % 4;
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), 4 - (from - dword)));
    address += part.size();
    bytes = bytes.subspan(part.size());
    if (!memory_.is_readable(dword, 4)) {
      // Only the executed bytes are known of a device's memory.
      uncached_read(RecordType::code_read, from, part, flags);
      continue;
    }
    memory_.note_use(dword, GuestMemory::kCode);
    const bool same = memory_.is_ram(dword, 4)
                          ? are_equal(part.data(), memory_.shadow(from), part.size()) &&
                                !memory_.differs(dword, 4)
                          : are_equal(part.data(), &fetched_[from - dword], part.size());
    if (dword == fetched_dword_ && same) continue;
    fetched_dword_ = dword;
    std::array<std::uint8_t, 4>& value = fetched_;
    memory_.read(dword, value);
    std::copy(part.begin(), part.end(), value.begin() + (from - dword));
    uncached_read(RecordType::code_read, dword, value, flags);
  }
}

bool BusModel::fetch_plainly(const PageInRam& page, PhysicalAddress address,
                             std::span<const std::uint8_t> bytes, bool sequential) {
  if (model_ != CacheModel::none || !page.plain || !others_.empty()) return false;
  const std::uint64_t from = address & 0xfff, begin = from - from % 4, end = from + bytes.size();
  if (!are_equal(bytes.data(), page.shadow + from, bytes.size())) return false;
  const auto differs = [&](std::uint64_t at) {
    return std::memcmp(page.live + at, page.shadow + at, 4) != 0;
  };
  for (std::uint64_t at = begin; at < end; at += 4)
    if (differs(at)) return false;
  if (!sequential) fetched_dword_ = kNoLine;
  for (std::uint64_t at = begin; at < end; at += 4) {
    const PhysicalAddress dword = address - from + at;
    if (dword == fetched_dword_) continue;
    fetched_dword_ = dword;
    std::memcpy(fetched_.data(), page.shadow + at, 4);
    sink_.single(RecordType::code_read, dword, fetched_, 0);
  }
  return true;
}

bool BusModel::fetch(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                     bool sequential) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (cacheable(address, size)) {
    cached_read(RecordType::code_read, address, bytes);
    fetched_line_ = (address + size - 1) / line_bytes();
    return !cache_disabled_;
  }
  fetch_uncached(address, bytes, sequential);
  return model_ == CacheModel::none && memory_.is_ram(address, size);
}

void BusModel::clear() {
  data_.fill({});
  code_.fill({});
  fetched_line_ = fetched_dword_ = kNoLine;
  external_ = 0;
}

void BusModel::flush_line(PhysicalAddress address) {
  if (model_ == CacheModel::none) return;
  const std::uint64_t number = address / line_bytes();
  const CacheSet& set = set_in(data_, number);
  const unsigned way = set.find(number);
  if (way < kWays && set.ways[way].dirty) write_back(number, 0);
  drop(data_, number);
  drop(code_, number);
  (void)ask_others(number, true);
}

void BusModel::flush(std::uint8_t kind) {
  for (const CacheSet& set : data_)
    for (unsigned way = 0; way < kWays; ++way)
      if (set.line[way] != kNoLine && set.ways[way].dirty) write_back(set.line[way], 0);
  const std::uint64_t external = external_;
  clear();
  external_ = external;
  sink_.event(RecordType::flush, kind, 1);
}

}  // namespace citcat::monitor
