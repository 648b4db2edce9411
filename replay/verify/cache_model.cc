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
constexpr std::uint32_t kInOrder = 0x76543210;

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

CacheModel::CacheModel(const CacheDescriptor& descriptor, CachedMemory memory)
    : descriptor_(&descriptor),
      ways_(descriptor.ways),
      set_mask_(descriptor.bytes / descriptor.line_bytes / descriptor.ways - 1),
      set_shift_(static_cast<unsigned>(std::countr_zero(std::bit_ceil(kLines + ways_)))),
      stores_only_use_(descriptor.form != CacheForm::write_back && !descriptor.split),
      is_lru_(descriptor.replacement == Replacement::lru),
      line_shift_(static_cast<unsigned>(std::countr_zero(descriptor.line_bytes))),
      memory_(memory) {
  const std::size_t words = (std::size_t{set_mask_} + 1) << set_shift_;
  if (descriptor.split) code_begin_ = words;
  words_.resize(descriptor.split ? 2 * words : words);
  clear();
}

void CacheModel::clear() {
  for (std::size_t at = 0; at < words_.size(); at += std::size_t{1} << set_shift_) {
    const Set set = words_.data() + at;
    set[kLatest] = set[kStored] = kNone;
    set[kRecency] = is_lru_ ? kInOrder : 0;
    set[kModified] = 0;
    std::fill_n(set + kLines, ways_, kNone);
  }
}

bool CachedMemory::has(PhysAddr a) const {
  if (a.value >= kHoleBegin && a.value < kHoleEnd) return false;
  return ram_bytes_ == 0 || a.value < ram_bytes_ || a.value >> 32 != 0;
}

inline bool CacheModel::cacheable(PhysAddr a) const {
  if (!memory_.has(a)) return false;
  return uncacheable_.empty() ||
         !std::binary_search(uncacheable_.begin(), uncacheable_.end(), a.page());
}

void CacheModel::learn_uncacheable(FrameNumber page) {
  const auto at = std::lower_bound(uncacheable_.begin(), uncacheable_.end(), page);
  if (at == uncacheable_.end() || *at != page) uncacheable_.insert(at, page);
}

// ---------------------------------------------------------------------------------------------
// One set

inline std::optional<std::uint32_t> CacheModel::find(ConstSet set, std::uint64_t line) const {
  for (std::uint32_t way = 0; way < ways_; ++way) {
    if (set[kLines + way] == line) return way;
  }
  return std::nullopt;
}

/// Uses the line where it is held: looked for from that used last on.
inline std::optional<std::uint32_t> CacheModel::find_and_use(Set set, std::uint64_t line) const {
  if (!is_lru_) {
    const auto way = find(set, line);
    if (way) use(set, *way);
    return way;
  }
  const std::uint64_t recency = set[kRecency];
  for (unsigned at = 0; at != 4 * ways_; at += 4) {
    const std::uint64_t way = recency >> at & 15;
    if (set[kLines + way] != line) continue;
    const std::uint64_t before = recency & ((std::uint64_t{1} << at) - 1);
    const std::uint64_t after = recency >> (at + 4) << (at + 4);
    set[kRecency] = static_cast<std::uint32_t>(after | before << 4 | way);
    set[kLatest] = line;
    return static_cast<std::uint32_t>(way);
  }
  return std::nullopt;
}

inline void CacheModel::use(Set set, std::uint32_t way) const {
  set[kLatest] = set[kLines + way];
  const std::uint64_t recency = set[kRecency];
  if (!is_lru_) {
    // Bit 0: the pair 0, 1 was used last. Bits 1 and 2: way 0, way 2 was, within its pair.
    const bool low_pair = way < 2, first = way % 2 == 0;
    const std::uint32_t pair_bit = low_pair ? 2 : 4;
    set[kRecency] = (set[kRecency] & ~(pair_bit | 1)) | (low_pair ? 1 : 0) | (first ? pair_bit : 0);
    return;
  }
  // Nearly always it is the one that gave way.
  unsigned at = 4 * (ways_ - 1);
  while ((recency >> at & 15) != way) at -= 4;
  const std::uint64_t before = recency & ((std::uint64_t{1} << at) - 1);
  const std::uint64_t after = recency >> (at + 4) << (at + 4);
  set[kRecency] = static_cast<std::uint32_t>(after | before << 4 | way);
}

inline std::uint32_t CacheModel::victim(ConstSet set) const {
  if (const auto empty = find(set, kNone)) return *empty;
  const auto recency = static_cast<std::uint32_t>(set[kRecency]);
  if (!is_lru_) {
    if ((recency & 1) == 0) return (recency & 2) != 0 ? 1 : 0;
    return (recency & 4) != 0 ? 3 : 2;
  }
  return recency >> (4 * (ways_ - 1)) & 15;
}

/// Makes room for a line and puts it there.
inline std::uint32_t CacheModel::place(Set set, std::uint64_t line) {
  const std::uint32_t way = victim(set), bit = 1u << way;
  const std::uint64_t old = set[kLines + way];
  if ((set[kModified] & bit) != 0) tell(CacheTraffic::Kind::write_back, old);
  set[kLines + way] = line;
  set[kModified] &= ~std::uint64_t{bit};
  set[kStored] = kNone;
  use(set, way);
  return way;
}

void CacheModel::drop(Set set, std::uint64_t line) const {
  const auto way = find(set, line);
  if (!way) return;
  if (set[kLatest] == line) set[kLatest] = kNone;
  if (set[kStored] == line) set[kStored] = kNone;
  set[kLines + *way] = kNone;
  set[kModified] &= ~(std::uint64_t{1} << *way);
}

inline void CacheModel::tell(CacheTraffic::Kind kind, std::uint64_t line) {
  traffic_.push_back({kind, PhysAddr{line << line_shift_}});
}

// ---------------------------------------------------------------------------------------------
// Accesses

bool CacheModel::use_line(Set set, std::uint64_t line, bool code) {
  if (find_and_use(set, line)) return false;
  if (!cacheable(PhysAddr{line << line_shift_})) return false;
  // What the data cache holds modified goes to memory before code is fetched from there.
  if (code && descriptor_->split) snoop_read(PhysAddr{line << line_shift_});
  if (disabled_) return true;
  place(set, line);
  tell(code ? CacheTraffic::Kind::code_fill : CacheTraffic::Kind::data_fill, line);
  return true;
}

/// A store; `set` is that of the data.
bool CacheModel::change_line(Set set, std::uint64_t line) {
  if (descriptor_->split) drop(set_of(line, true), line);
  const bool uses = descriptor_->write_hit_is_use && set[kLatest] != line;
  auto way = uses ? find_and_use(set, line) : find(set, line);
  const bool hit = way.has_value();
  if (!hit) {
    if (!descriptor_->allocates_on_write || disabled_ || !cacheable(PhysAddr{line << line_shift_}))
      return false;
    way = place(set, line);
    tell(CacheTraffic::Kind::data_fill, line);
  }
  if (descriptor_->form == CacheForm::write_back) {
    set[kModified] |= 1u << *way;
    set[kStored] = line;
  }
  return !hit;
}

void CacheModel::flush() {
  const std::size_t end = code_begin_ != 0 ? code_begin_ : words_.size();
  for (std::size_t at = 0; at < end; at += std::size_t{1} << set_shift_) {
    const Set set = words_.data() + at;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if ((set[kModified] >> way & 1) != 0) tell(CacheTraffic::Kind::write_back, set[kLines + way]);
    }
  }
  clear();
}

void CacheModel::snoop_read(PhysAddr a) {
  const std::uint64_t line = a.value >> line_shift_;
  const Set set = set_of(line, false);
  const auto way = find(set, line);
  if (!way || (set[kModified] >> *way & 1) == 0) return;
  tell(CacheTraffic::Kind::snoop_write_back, line);
  // As it is in memory.
  set[kModified] &= ~(std::uint64_t{1} << *way);
  set[kStored] = kNone;
}

void CacheModel::snoop_write(PhysAddr a, std::uint32_t size) {
  const std::uint64_t last = (a.value + size - 1) >> line_shift_;
  for (std::uint64_t line = a.value >> line_shift_; line <= last; ++line) {
    snoop_read(PhysAddr{line << line_shift_});
    for (const bool code : {false, true}) drop(set_of(line, code), line);
  }
}

// ---------------------------------------------------------------------------------------------
// What the bus shows

void CacheModel::learn_fill(PhysAddr a, bool code) {
  const std::uint64_t line = a.value >> line_shift_;
  const Set set = set_of(line, code);
  drop(set, line);
  const std::size_t before = traffic_.size();
  place(set, line);
  if (code && descriptor_->split) set_of(line, false)[kStored] = kNone;
  traffic_.resize(before);
}

bool CacheModel::is_cached(PhysAddr a, bool code) const {
  const std::uint64_t line = a.value >> line_shift_;
  return find(set_of(line, code), line).has_value();
}

bool CacheModel::same_lines(const CacheModel& other) const {
  if (words_.size() != other.words_.size()) return false;
  for (std::size_t at = 0; at < words_.size(); at += std::size_t{1} << set_shift_) {
    const std::uint32_t behind = kLines + ways_;
    const ConstSet a = words_.data() + at, b = other.words_.data() + at;
    if (!std::equal(a + kRecency, a + behind, b + kRecency)) return false;
  }
  return disabled_ == other.disabled_ && uncacheable_ == other.uncacheable_;
}

bool CacheModel::writes_through(PhysAddr a) const {
  if (descriptor_->form != CacheForm::write_back) return true;
  if (is_cached(a, false)) return false;
  return disabled_ || !descriptor_->allocates_on_write || !cacheable(a);
}

}  // namespace citcat
