#pragma once
// The cache between the replayed processor and the bus: which accesses fill a line, and which lines
// are written back. It holds addresses, not data.
//
// The details of each processor's cache are a row of a table (find_cache()), where a mistake in
// them can be corrected.

#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/address.h"
#include "events/recording.h"
#include "replay/machine/walk_observer.h"

namespace citcat {

/// Which line of a full set is evicted.
enum class Replacement : std::uint8_t {
  lru,         ///< the one not used for longest
  pseudo_lru,  ///< three bits for four ways (i486 Microprocessor data book, 5.2; Pentium alike)
};

/// A cache as its manual describes it, and habits of its processor that decide what the cache
/// hears.
struct CacheDescriptor {
  const char* name = "";
  CacheForm form = CacheForm::none;
  std::uint32_t bytes = 0;  ///< of each cache, a power of two
  std::uint32_t ways = 0;   ///< at most CacheModel::kMaxWays
  std::uint32_t line_bytes = 0;
  bool split = false;  ///< one cache for code and one for data
  Replacement replacement = Replacement::lru;
  bool allocates_on_write = false;  ///< a store that misses fills its line first
  bool write_hit_is_use = false;    ///< a store that hits counts for replacement
  WalkPolicy walks = WalkPolicy::all_rights;
  bool ins_reads_destination = false;  ///< INS reads memory before it writes it
  const char* what = "";               ///< for people
};

/// The rows of the table, the likeliest first.
std::span<const CacheDescriptor> known_caches();
/// The row with this name; null when there is none.
const CacheDescriptor* find_cache(const std::string& name);
/// The row for what a capture declares; null if that is not a cache, or not a known one.
const CacheDescriptor* declared_cache(const BusModel& bus);

/// What a cache makes of an access, on the bus.
struct CacheTraffic {
  enum class Kind : std::uint8_t {
    code_fill,
    data_fill,
    write_back,        ///< of a line that gives way, or at a flush
    snoop_write_back,  ///< of a line that somebody else wants
  };
  Kind kind = Kind::data_fill;
  PhysAddr line;  ///< its first byte
  bool is_fill() const { return kind == Kind::code_fill || kind == Kind::data_fill; }
  bool operator==(const CacheTraffic&) const = default;
};
const char* cache_traffic_name(CacheTraffic::Kind kind);
/// The same as the bus shows it: nullopt for what moves no line. Of the parts of a line the lowest
/// counts.
std::optional<CacheTraffic> captured_cache_traffic(const BusTransaction& t,
                                                   const CacheDescriptor& descriptor);

/// Which of a machine's addresses are cached: memory, but not the hole below 1 MiB, because a PC
/// caches no video memory and no ROM. Everything beyond 4 GiB counts as memory.
class CachedMemory {
 public:
  /// `ram_bytes`: from 0 on, 0 where that is not known.
  explicit CachedMemory(std::uint32_t ram_bytes) : ram_bytes_(ram_bytes) {}
  bool has(PhysAddr a) const;

 private:
  std::uint32_t ram_bytes_;
};

class CacheModel {
 public:
  static constexpr std::uint32_t kMaxWays = 8;

  /// Empty.
  CacheModel(const CacheDescriptor& descriptor, CachedMemory memory);

  // Accesses of the processor in their order. What they cause on the bus is added to traffic().
  // False: nothing was added.
  bool fetch(PhysAddr a, std::uint32_t size) { return touch(a, size, true); }
  bool read(PhysAddr a, std::uint32_t size) { return touch(a, size, false); }
  /// Code is fetched from the line that contains the byte at `a`: once or several times, which is
  /// the same.
  bool fetch_line(PhysAddr a) { return touch_line(a.value >> line_shift_, true); }
  bool write(PhysAddr a, std::uint32_t size) {
    const std::uint64_t first = a.value >> line_shift_;
    const std::uint64_t last = (a.value + size - 1) >> line_shift_;
    bool changed = false;
    for (std::uint64_t line = first; line <= last; ++line) changed |= store_line(line);
    return changed;
  }
  /// INVD or WBINVD. Modified lines are written back, in the order of sets and ways.
  void flush();
  /// Another bus master writes: lines go, written back first when modified.
  void snoop_write(PhysAddr a, std::uint32_t size);
  /// Another bus master reads a line: it stays, no longer modified.
  void snoop_read(PhysAddr a);
  /// CR0.CD: no new lines (Intel SDM vol. 3, 12.5.1).
  void set_disabled(bool disabled) { disabled_ = disabled; }

  /// The bus shows that the line was filled here, whatever the model thinks.
  void learn_fill(PhysAddr line, bool code);
  /// The bus shows that this page is not cached.
  void learn_uncacheable(FrameNumber page);

  bool is_cached(PhysAddr a, bool code) const;
  /// A number that the addresses of one line have in common.
  std::uint64_t line_of(PhysAddr a) const { return a.value >> line_shift_; }
  /// Whether a store to it goes to the bus by itself, and not with its line.
  bool writes_through(PhysAddr a) const;
  const CacheDescriptor& descriptor() const { return *descriptor_; }
  /// Holds the same lines in the same order of use, and will do the same.
  bool same_lines(const CacheModel& other) const;
  /// What accesses caused since it was cleared last.
  std::vector<CacheTraffic>& traffic() { return traffic_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// What is kept of a set, in words that lie in one line of the host's cache. A line number is its
  /// address divided by the size of a line.
  enum Word : std::uint8_t {
    /// The line used last, as long as it is held. To use it again changes nothing.
    kLatest,
    /// In the data part: a modified line that the code part does not hold. As long as it is the
    /// latest, to store to it changes nothing.
    kStored,
    kRecency,   ///< ways from the latest on, a nibble each; or bits
    kModified,  ///< a bit for each way
    kLines,     ///< by way: number, or kNone
  };
  using Words = std::vector<std::uint64_t, boost::alignment::aligned_allocator<std::uint64_t, 64>>;
  using Set = std::uint64_t*;
  using ConstSet = const std::uint64_t*;

  bool cacheable(PhysAddr a) const;
  std::size_t offset_of(std::uint64_t line, bool code) const {
    return (code ? code_begin_ : 0) + ((line & set_mask_) << set_shift_);
  }
  Set set_of(std::uint64_t line, bool code) { return words_.data() + offset_of(line, code); }
  ConstSet set_of(std::uint64_t line, bool code) const {
    return words_.data() + offset_of(line, code);
  }
  /// The way that holds the line.
  std::optional<std::uint32_t> find(ConstSet set, std::uint64_t line) const;
  std::optional<std::uint32_t> find_and_use(Set set, std::uint64_t line) const;
  void use(Set set, std::uint32_t way) const;
  std::uint32_t victim(ConstSet set) const;
  std::uint32_t place(Set set, std::uint64_t line);
  bool touch(PhysAddr a, std::uint32_t size, bool code) {
    const std::uint64_t first = a.value >> line_shift_;
    const std::uint64_t last = (a.value + size - 1) >> line_shift_;
    bool changed = false;
    for (std::uint64_t line = first; line <= last; ++line) changed |= touch_line(line, code);
    return changed;
  }
  bool touch_line(std::uint64_t line, bool code) {
    const Set set = set_of(line, code);
    return set[kLatest] != line && use_line(set, line, code);
  }
  bool store_line(std::uint64_t line) {
    const Set set = set_of(line, false);
    const bool known = set[kLatest] == line && (stores_only_use_ || set[kStored] == line);
    return !known && change_line(set, line);
  }
  bool use_line(Set set, std::uint64_t line, bool code);
  bool change_line(Set set, std::uint64_t line);
  void drop(Set set, std::uint64_t line) const;
  void tell(CacheTraffic::Kind kind, std::uint64_t line);
  void clear();

  const CacheDescriptor* descriptor_;
  std::uint32_t ways_ = 0;
  std::uint32_t set_mask_ = 0;    ///< of line numbers
  unsigned set_shift_ = 0;        ///< log2 of the words of a set
  std::size_t code_begin_ = 0;    ///< of `words_`; 0 where code is with the data
  Words words_;                   ///< sets of data (or all), then those of code
  bool stores_only_use_ = false;  ///< a store changes nothing but the order of use
  bool is_lru_ = false;
  unsigned line_shift_ = 0;
  CachedMemory memory_;
  bool disabled_ = false;
  std::vector<FrameNumber> uncacheable_;  ///< pages, sorted
  std::vector<CacheTraffic> traffic_;
};

}  // namespace citcat
