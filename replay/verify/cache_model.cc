#include "replay/verify/cache_model.h"

#include <algorithm>
#include <array>
#include <bit>

namespace citcat {

namespace {

/// Video memory, adapters' ROM and the BIOS: not cached on any PC (KEN# is inactive there).
constexpr std::uint32_t kHoleBegin = 0xa0000, kHoleEnd = 0x100000;

constexpr CacheDescriptor i486() {
  CacheDescriptor c;
  c.name = "i486";
  c.what = "8 KiB for code and data, 4-way, 16-byte lines, write-through";
  c.form = CacheForm::write_through;
  c.bytes = 8192;
  c.ways = 4;
  c.line_bytes = 16;
  c.write_hit_is_use = true;
  c.walks = WalkPolicy::rights_as_used;
  c.ins_reads_destination = true;
  return c;
}

constexpr CacheDescriptor pentium() {
  CacheDescriptor c;
  c.name = "pentium";
  c.what = "16 KiB for code, 16 KiB for data, 4-way, 32-byte lines, write-back";
  c.form = CacheForm::write_back;
  c.bytes = 16384;
  c.ways = 4;
  c.line_bytes = 32;
  c.split = true;
  c.allocates_on_write = true;
  c.write_hit_is_use = true;
  c.walks = WalkPolicy::rights_as_used;
  c.ins_reads_destination = true;
  return c;
}

constexpr CacheDescriptor write_back() {
  CacheDescriptor c = pentium();
  c.name = "write-back";
  c.what = "16 KiB for code and data, 4-way, 16-byte lines, write-back";
  c.line_bytes = 16;
  c.split = false;
  return c;
}

constexpr CacheDescriptor with_pseudo_lru(CacheDescriptor c, const char* name, const char* what) {
  c.name = name;
  c.what = what;
  c.replacement = Replacement::pseudo_lru;
  return c;
}

constexpr std::array<CacheDescriptor, 5> kCaches{
    i486(), pentium(), write_back(),
    with_pseudo_lru(i486(), "i486-plru", "the same as i486, pseudo-LRU"),
    with_pseudo_lru(pentium(), "pentium-plru", "the same as pentium, pseudo-LRU")};

/// Ways in their order, a nibble each, the latest in the lowest.
constexpr std::uint64_t kInOrder = 0x76543210;

}  // namespace

std::span<const CacheDescriptor> known_caches() { return kCaches; }

const CacheDescriptor* find_cache(const std::string& name) {
  const auto row = std::find_if(kCaches.begin(), kCaches.end(),
                                [&](const CacheDescriptor& c) { return name == c.name; });
  return row != kCaches.end() ? row : nullptr;
}

const CacheDescriptor* declared_cache(const BusModel& bus) {
  const auto row = std::find_if(kCaches.begin(), kCaches.end(), [&](const CacheDescriptor& c) {
    return c.form == bus.form && (bus.line_bytes == 0 || bus.line_bytes == c.line_bytes);
  });
  return row != kCaches.end() ? row : nullptr;
}

const char* cache_traffic_name(CacheTraffic::Kind kind) {
  switch (kind) {
    case CacheTraffic::Kind::code_fill:
      return "fill for code";
    case CacheTraffic::Kind::data_fill:
      return "fill for data";
    case CacheTraffic::Kind::write_back:
      return "write-back";
    case CacheTraffic::Kind::snoop_write_back:
      return "snoop write-back";
  }
  return "?";
}

std::optional<CacheTraffic> captured_cache_traffic(const BusTransaction& t,
                                                   const CacheDescriptor& descriptor) {
  if (!t.is_memory() || !t.has(kLine) || t.has(kUncacheable)) return std::nullopt;
  if (t.address.offset_in(descriptor.line_bytes) != 0) return std::nullopt;
  switch (t.op) {
    case BusOp::code_read:
      return CacheTraffic{CacheTraffic::Kind::code_fill, t.address};
    case BusOp::data_read:
      return CacheTraffic{CacheTraffic::Kind::data_fill, t.address};
    default:
      if (!t.has(kWriteBack)) return std::nullopt;
      return CacheTraffic{
          t.has(kSnoop) ? CacheTraffic::Kind::snoop_write_back : CacheTraffic::Kind::write_back,
          t.address};
  }
}

CacheModel::CacheModel(const CacheDescriptor& descriptor, std::uint32_t ram_bytes)
    : descriptor_(&descriptor),
      sets_(descriptor.bytes / descriptor.line_bytes / descriptor.ways),
      ways_(descriptor.ways),
      code_array_(descriptor.split ? 1 : 0),
      stores_only_use_(descriptor.form != CacheForm::write_back && !descriptor.split),
      is_lru_(descriptor.replacement == Replacement::lru),
      line_shift_(static_cast<unsigned>(std::countr_zero(descriptor.line_bytes))),
      ram_bytes_(ram_bytes) {
  clear();
}

void CacheModel::clear() {
  const std::size_t lines = std::size_t{sets_} * descriptor_->ways;
  for (Array& a : arrays_) {
    a.lines.assign(lines, kNone);
    a.modified.assign(lines, 0);
    a.recency.assign(sets_, descriptor_->replacement == Replacement::lru ? kInOrder : 0);
    a.latest.assign(sets_, kNone);
    a.stored.assign(sets_, kNone);
  }
}

bool CacheModel::may_be_cached(PhysAddr a, std::uint32_t ram_bytes) {
  if (a.value >= kHoleBegin && a.value < kHoleEnd) return false;
  return ram_bytes == 0 || a.value < ram_bytes;
}

bool CacheModel::cacheable(PhysAddr a) const {
  if (!may_be_cached(a, ram_bytes_)) return false;
  return uncacheable_.empty() ||
         !std::binary_search(uncacheable_.begin(), uncacheable_.end(), a.page());
}

void CacheModel::learn_uncacheable(std::uint32_t page) {
  const auto at = std::lower_bound(uncacheable_.begin(), uncacheable_.end(), page);
  if (at == uncacheable_.end() || *at != page) uncacheable_.insert(at, page);
}

// ---------------------------------------------------------------------------------------------
// One set

std::optional<CacheModel::Slot> CacheModel::find(const Array& array, std::uint32_t line) const {
  const Slot first{set_of(line), 0};
  const std::uint32_t* lines = &array.lines[index(first)];
  for (std::uint32_t way = 0; way < ways_; ++way) {
    if (lines[way] == line) return Slot{first.set, way};
  }
  return std::nullopt;
}

/// Uses the line where it is held: looked for from that used last on.
inline std::optional<CacheModel::Slot> CacheModel::find_and_use(Array& array, std::uint32_t line) {
  if (!is_lru_) {
    const auto slot = find(array, line);
    if (slot) use(array, *slot);
    return slot;
  }
  const std::uint32_t set = set_of(line);
  const std::uint32_t* const lines = &array.lines[index({set, 0})];
  std::uint64_t& recency = array.recency[set];
  for (unsigned at = 0; at != 4 * ways_; at += 4) {
    const std::uint64_t way = recency >> at & 15;
    if (lines[way] != line) continue;
    const std::uint64_t before = recency & ((std::uint64_t{1} << at) - 1);
    recency = recency >> (at + 4) << (at + 4) | before << 4 | way;
    array.latest[set] = line;
    return Slot{set, static_cast<std::uint32_t>(way)};
  }
  return std::nullopt;
}

void CacheModel::use(Array& array, Slot slot) {
  std::uint64_t& recency = array.recency[slot.set];
  array.latest[slot.set] = array.lines[index(slot)];
  if (!is_lru_) {
    // Bit 0: the pair 0, 1 was used last. Bits 1 and 2: way 0, way 2 was, within its pair.
    const bool low_pair = slot.way < 2, first = slot.way % 2 == 0;
    const std::uint64_t pair_bit = low_pair ? 2 : 4;
    recency = (recency & ~(pair_bit | 1)) | (low_pair ? 1 : 0) | (first ? pair_bit : 0);
    return;
  }
  unsigned at = 0;
  while ((recency >> at & 15) != slot.way) at += 4;
  const std::uint64_t before = recency & ((std::uint64_t{1} << at) - 1);
  const std::uint64_t after = at < 60 ? recency >> (at + 4) << (at + 4) : 0;
  recency = after | before << 4 | slot.way;
}

std::uint32_t CacheModel::victim(const Array& array, std::uint32_t set) const {
  for (std::uint32_t way = 0; way < descriptor_->ways; ++way) {
    if (array.lines[index({set, way})] == kNone) return way;
  }
  const std::uint64_t recency = array.recency[set];
  if (descriptor_->replacement == Replacement::pseudo_lru) {
    if ((recency & 1) == 0) return (recency & 2) != 0 ? 1 : 0;
    return (recency & 4) != 0 ? 3 : 2;
  }
  return static_cast<std::uint32_t>(recency >> (4 * (descriptor_->ways - 1)) & 15);
}

/// Makes room for a line and puts it there.
CacheModel::Slot CacheModel::place(Array& array, std::uint32_t line) {
  const std::uint32_t set = set_of(line);
  const Slot slot{set, victim(array, set)};
  const std::size_t i = index(slot);
  if (array.lines[i] != kNone && array.modified[i] != 0) {
    tell(CacheTraffic::Kind::write_back, array.lines[i]);
  }
  array.lines[i] = line;
  array.modified[i] = 0;
  array.stored[set] = kNone;
  use(array, slot);
  return slot;
}

void CacheModel::drop(Array& array, std::uint32_t line) {
  const auto slot = find(array, line);
  if (!slot) return;
  if (is_latest(array, line)) array.latest[slot->set] = kNone;
  if (array.stored[slot->set] == line) array.stored[slot->set] = kNone;
  array.lines[index(*slot)] = kNone;
  array.modified[index(*slot)] = 0;
}

/// A line of the data is as it is in memory.
void CacheModel::clean(Slot slot) {
  arrays_[0].modified[index(slot)] = 0;
  arrays_[0].stored[slot.set] = kNone;
}

void CacheModel::tell(CacheTraffic::Kind kind, std::uint32_t line) {
  traffic_.push_back({kind, PhysAddr{line << line_shift_}});
}

// ---------------------------------------------------------------------------------------------
// Accesses

void CacheModel::use_line(Array& cache, std::uint32_t line, bool code) {
  if (find_and_use(cache, line)) return;
  if (!cacheable(PhysAddr{line << line_shift_})) return;
  if (code && descriptor_->split) {
    // What the data cache holds modified goes to memory before code is fetched from there.
    const auto owner = find(arrays_[0], line);
    if (owner && arrays_[0].modified[index(*owner)] != 0) {
      tell(CacheTraffic::Kind::snoop_write_back, line);
      clean(*owner);
    }
  }
  if (disabled_) return;
  place(cache, line);
  tell(code ? CacheTraffic::Kind::code_fill : CacheTraffic::Kind::data_fill, line);
}

void CacheModel::store_line(std::uint32_t line) {
  Array& data = arrays_[0];
  if (descriptor_->split) drop(arrays_[1], line);
  const bool uses = descriptor_->write_hit_is_use && !is_latest(data, line);
  auto slot = uses ? find_and_use(data, line) : find(data, line);
  if (!slot) {
    if (!descriptor_->allocates_on_write || disabled_ || !cacheable(PhysAddr{line << line_shift_}))
      return;
    slot = place(data, line);
    tell(CacheTraffic::Kind::data_fill, line);
  }
  if (descriptor_->form != CacheForm::write_back) return;
  data.modified[index(*slot)] = 1;
  data.stored[slot->set] = line;
}

void CacheModel::flush() {
  for (std::size_t i = 0; i < arrays_[0].lines.size(); ++i) {
    if (arrays_[0].modified[i] != 0) {
      tell(CacheTraffic::Kind::write_back, arrays_[0].lines[i]);
    }
  }
  clear();
}

void CacheModel::snoop_read(PhysAddr a) {
  const std::uint32_t line = a.low32() >> line_shift_;
  const auto slot = find(arrays_[0], line);
  if (!slot || arrays_[0].modified[index(*slot)] == 0) return;
  tell(CacheTraffic::Kind::snoop_write_back, line);
  clean(*slot);
}

void CacheModel::snoop_write(PhysAddr a, std::uint32_t size) {
  const std::uint32_t last = (a.low32() + size - 1) >> line_shift_;
  for (std::uint32_t line = a.low32() >> line_shift_; line <= last; ++line) {
    snoop_read(PhysAddr{line << line_shift_});
    for (Array& cache : arrays_) drop(cache, line);
  }
}

// ---------------------------------------------------------------------------------------------
// What the bus shows

void CacheModel::learn_fill(PhysAddr a, bool code) {
  const std::uint32_t line = a.low32() >> line_shift_;
  Array& cache = array(code);
  drop(cache, line);
  const std::size_t before = traffic_.size();
  place(cache, line);
  if (code && descriptor_->split) arrays_[0].stored[set_of(line)] = kNone;
  traffic_.resize(before);
}

bool CacheModel::is_cached(PhysAddr a, bool code) const {
  return find(array(code), a.low32() >> line_shift_).has_value();
}

bool CacheModel::same_lines(const CacheModel& other) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Array &a = arrays_[i], &b = other.arrays_[i];
    if (a.lines != b.lines || a.recency != b.recency || a.modified != b.modified) return false;
  }
  return disabled_ == other.disabled_ && uncacheable_ == other.uncacheable_;
}

bool CacheModel::writes_through(PhysAddr a) const {
  if (descriptor_->form != CacheForm::write_back) return true;
  if (is_cached(a, false)) return false;
  return disabled_ || !descriptor_->allocates_on_write || !cacheable(a);
}

}  // namespace citcat
