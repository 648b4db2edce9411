#pragma once
// Decides which accesses of the processor reach the pins, and what they look like there: four
// processors' caches, modelled after docs/formats/capture.md.
//
// none        Every data access; code by aligned dwords, each fetched again only when it is not the
//             one fetched last.
// i486        8 KiB for code and data, 4-way, 16-byte lines, write-through, no allocation on writes
//             (i486 Microprocessor data book, ch. 5).
// write_back  16 KiB for code and data, 4-way, 16-byte lines, write-back with allocation on writes:
//             size and lines of the last processors for i486 boards (which differ in whether they
//             allocate).
// pentium     16 KiB each for code and data, 4-way, 32-byte lines, write-back with allocation on
//             writes.

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "monitor/bus/cache_set.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/bus/known_line.h"
#include "monitor/bus/record_sink.h"
#include "monitor/bus/short_bytes.h"

namespace citcat::monitor {

enum class CacheModel : std::uint8_t { none, i486, write_back, pentium };

/// Bytes of code that are fetched at once: a line, or a dword where there is no cache.
inline std::uint32_t fetched_together(CacheModel model) {
  return model == CacheModel::none ? 4 : model == CacheModel::pentium ? 32 : 16;
}

/// Where the host has a page of RAM; nullptr if a part of the page is not RAM.
struct PageInRam {
  const std::uint8_t* live = nullptr;
  std::uint8_t* shadow = nullptr;
  bool plain = false;  ///< all of it may be cached
};

class BusModel {
 public:
  BusModel(GuestMemory& memory, RecordSink& sink, CacheModel model)
      : memory_(memory), sink_(sink), model_(model) {}

  /// Physical range that is never cached: the driver's window.
  void set_uncached_window(std::uint32_t begin, std::uint32_t bytes) {
    window_begin_ = begin, window_bytes_ = bytes;
  }
  /// `holds` says whether a byte of RAM is in a table of descriptors; without it, any byte may be.
  void set_descriptors(std::function<bool(PhysicalAddress)> holds) {
    holds_descriptor_ = std::move(holds);
  }
  PageInRam page_in_ram(PhysicalAddress frame) const {
    constexpr std::uint32_t kPage = 0x1000;
    if (!memory_.is_ram(frame, kPage)) return {};
    const bool in_window = window_bytes_ != 0 && frame + kPage > window_begin_ &&
                           frame < std::uint64_t{window_begin_} + window_bytes_;
    return {memory_.live(frame), memory_.shadow(frame), !in_window && memory_.may_be_cached(frame)};
  }
  /// CR0.CD: with it no new lines are filled, hits are still served (Intel SDM vol. 3, 12.5.1).
  void set_cache_disabled(bool disabled) { cache_disabled_ = disabled; }

  /// Several processors share the bus: this one is number `number`, and the caches of `others` see
  /// what it does. They must outlive it.
  void share(unsigned number, std::vector<BusModel*> others) {
    number_ = number;
    others_ = std::move(others);
  }
  /// With several processors: reads and writes from here on are those of an instruction that locks
  /// the bus, or its line.
  void set_locked(bool locked) { locked_ = locked && !others_.empty(); }

  /// The processor has read `bytes` at a physical address. Never crosses a page.
  void read(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  struct Range {
    PhysicalAddress begin = 0;
    std::uint32_t bytes = 0;
    bool holds(PhysicalAddress address) const { return address - begin < bytes; }
  };
  /// RAM in these ranges holds what the processor is about to be seen writing: no other master
  /// wrote it. There are two where it crosses into another page.
  void expect_writes(Range first, Range second) { expected_ = {first, second}; }
  /// The processor has written `bytes`; RAM holds them already.
  void write(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  /// The processor executes `bytes` at `address`. `sequential`: after the instruction before it.
  /// Returns whether more of the same line (without caches: dword) would not be seen, as long as
  /// nothing else happens.
  bool fetch(PhysicalAddress address, std::span<const std::uint8_t> bytes, bool sequential);
  // The same for an access to a known page that lies in one line, which the cache holds and nobody
  // else has changed: the bus does not show it, and what the last fetch has left stays. These
  // return false, and do nothing, if the access is not of this kind.
  bool read_unseen(const PageInRam& page, PhysicalAddress address, std::uint32_t size) {
    const std::uint64_t number = address >> line_shift_;
    if (!caches(page) || !in_one_line(address, size) || disturbs_fetch(number)) return false;
    CacheSet& set = set_in(data_, number);
    const unsigned way = set.find(number);
    if (way == kWays || !is_known(line_in(page, address), has_code_cache())) return false;
    set.use(way);
    return true;
  }
  bool write_unseen(const PageInRam& page, PhysicalAddress address,
                    std::span<const std::uint8_t> bytes) {
    const std::uint64_t number = address >> line_shift_;
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (!writes_back() || !caches(page) || !in_one_line(address, size) || disturbs_fetch(number))
      return false;
    CacheSet& set = set_in(data_, number);
    const unsigned way = set.find(number);
    if (way == kWays || set_in(code_, number).find(number) < kWays || number == fetched_line_ ||
        fetched_dword_ >> line_shift_ == number ||
        !is_known_but_for(line_in(page, address), address & (line_bytes() - 1), size,
                          has_code_cache()))
      return false;
    set.use(way);
    set.ways[way].dirty = true;
    std::memcpy(page.shadow + (address & 0xfff), bytes.data(), size);
    memory_.note_store(page.live);
    return true;
  }
  bool fetch_unseen(const PageInRam& page, PhysicalAddress address,
                    std::span<const std::uint8_t> bytes) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (!caches(page) || cache_disabled_ || !in_one_line(address, size) ||
        !is_plain_hit(cache_for(true), line_in(page, address), address, bytes))
      return false;
    fetched_line_ = address >> line_shift_;
    return true;
  }
  /// Whether code has a cache of its own, so that accesses to data that are not seen may be made
  /// before fetches from other pages of RAM.
  bool has_code_cache() const { return model_ == CacheModel::pentium; }
  // For such accesses to a page that may be cached, if they lie in one line.
  bool read_apart(const PageInRam& page, PhysicalAddress address) {
    return is_known(long_line(page.live, page.shadow, address), true) &&
           use_long(address >> kLongShift);
  }
  /// RAM has the operand already, and the page has neither code nor tables.
  bool write_apart(const PageInRam& page, PhysicalAddress address, std::uint32_t size) {
    const std::uint64_t at = address & 0xfff;
    if (!is_known_but_for(long_line(page.live, page.shadow, address), address % kLongLine, size,
                          true) ||
        !use_long(address >> kLongShift))
      return false;
    CacheSet& set = data_[(address >> kLongShift) % kLongSets];
    set.ways[set.latest].dirty = true;
    copy_operand(page.shadow + at, page.live + at, size);
    return true;
  }
  /// The same where no cache has the line: brings it in. False, with nothing done, if there is more
  /// to it.
  bool fill_apart(const PageInRam& page, bool store, PhysicalAddress address, std::uint32_t size) {
    const std::uint64_t number = address >> kLongShift, at = address & 0xfff;
    if (!is_known_but_for(long_line(page.live, page.shadow, address), address % kLongLine,
                          store ? size : 0, true) ||
        data_[number % kLongSets].find(number) < kWays)
      return false;
    fill(data_, RecordType::data_read, number, store ? static_cast<unsigned>(kFillForStore) : 0);
    if (!store) return true;
    CacheSet& set = data_[number % kLongSets];
    set.ways[set.latest].dirty = true;
    copy_operand(page.shadow + at, page.live + at, size);
    return true;
  }
  /// The same of code, which may lie in two lines of the page. `fills`: brings in what the code
  /// cache does not have. False, with nothing done, where it has not, or there is more to it.
  bool fetch_apart(const PageInRam& page, PhysicalAddress address,
                   std::span<const std::uint8_t> bytes, bool fills) {
    const std::uint64_t first = address >> kLongShift;
    const std::uint64_t last = (address + bytes.size() - 1) >> kLongShift;
    if (!page.plain || cache_disabled_ || (!fills && !(has_code(first) && has_code(last))))
      return false;
    const Line line = long_line(page.live, page.shadow, address);
    if (!is_known(line, true) ||
        (last != first && !is_known({line.live + kLongLine, line.known + kLongLine}, true)) ||
        !are_equal(bytes.data(), line.known + address % kLongLine, bytes.size()))
      return false;
    use_code(first);
    if (last != first) use_code(last);
    fetched_line_ = last;
    return true;
  }
  // Where the bus shows an access, whatever the cache holds.
  bool shows_all() const { return model_ == CacheModel::none; }
  /// Whether it shows the access and nothing else: nobody else has changed what is read, and what
  /// is written is not what was fetched last, nor code that a cache may hold.
  bool is_plain(const PageInRam& page, bool store, PhysicalAddress address,
                std::span<const std::uint8_t> bytes) const {
    if (!page.plain || (store ? writes_back() : !shows_all())) return false;
    if (!store) return are_equal(bytes.data(), page.shadow + (address & 0xfff), bytes.size());
    return fetched_dword_ - address >= bytes.size() && address - fetched_dword_ >= 4 &&
           (shows_all() || (memory_.uses_of(page.live) & GuestMemory::kCode) == 0);
  }
  void show_plainly(const PageInRam& page, bool store, PhysicalAddress address,
                    std::span<const std::uint8_t> bytes) {
    sink_.single(store ? RecordType::data_write : RecordType::data_read, address, bytes, 0);
    if (!store) return;
    copy_operand(page.shadow + (address & 0xfff), bytes.data(), bytes.size());
    memory_.note_store(page.live);
  }
  /// fetch() of code that nobody else has changed. Returns false, and does nothing, otherwise.
  bool fetch_plainly(const PageInRam& page, PhysicalAddress address,
                     std::span<const std::uint8_t> bytes, bool sequential);
  /// Reads RAM for the processor itself (page tables, descriptors): the value that is there.
  void read_ram(PhysicalAddress address, std::uint32_t size) {
    read(address, {memory_.live(address), size});
  }

  bool is_disabled() const { return cache_disabled_; }

  /// Empties the caches without a word on the bus: the start of a recording.
  void clear();
  /// CLFLUSH: a line that is held is written back where it is dirty, and no longer held.
  void flush_line(PhysicalAddress address);
  /// INVD and WBINVD: dirty lines are written back, then the flush is reported.
  void flush(std::uint8_t kind);

  /// Accesses that showed bytes somebody else had written.
  std::uint64_t external_changes() const { return external_; }

 private:
  static constexpr unsigned kMaxSets = 256, kWays = CacheSet::kWays;
  static constexpr std::uint64_t kNoLine = CacheSet::kNoLine;

  using Cache = std::array<CacheSet, kMaxSets>;

  /// Where code has a cache of its own: uses a line that the data cache has. False if it has not.
  bool use_long(std::uint64_t number) {
    CacheSet& set = data_[number % kLongSets];
    if (set.line[set.latest] == number) return true;
    const unsigned way = set.find(number);
    if (way == kWays) return false;
    set.use(way);
    return true;
  }

  /// The same of code.
  bool has_code(std::uint64_t number) const {
    const CacheSet& set = code_[number % kLongSets];
    return set.line[set.latest] == number || set.find(number) < kWays;
  }
  /// Uses a line of code that is known, wherever it is.
  void use_code(std::uint64_t number) {
    CacheSet& set = code_[number % kLongSets];
    if (set.line[set.latest] == number) return;
    const unsigned way = set.find(number);
    if (way < kWays)
      set.use(way);
    else
      fill_with_code(number);
  }
  void fill_with_code(std::uint64_t number);

  unsigned line_bytes() const { return 1u << line_shift_; }
  unsigned set_of(std::uint64_t number) const { return static_cast<unsigned>(number) & set_mask_; }
  CacheSet& set_in(Cache& cache, std::uint64_t number) const { return cache[set_of(number)]; }
  bool writes_back() const { return model_ >= CacheModel::write_back; }
  Cache& cache_for(bool code) { return code && has_code_cache() ? code_ : data_; }
  bool cacheable(PhysicalAddress address, std::uint32_t size) const {
    if (model_ == CacheModel::none || !memory_.is_ram(address, size)) return false;
    return address - window_begin_ >= window_bytes_ && memory_.may_be_cached(address);
  }
  bool caches(const PageInRam& page) const { return model_ != CacheModel::none && page.plain; }
  bool in_one_line(PhysicalAddress address, std::uint32_t size) const {
    return (address & (line_bytes() - 1)) + size <= line_bytes();
  }
  Line line_at(PhysicalAddress base) const {
    return {memory_.live(base), std::as_const(memory_).shadow(base)};
  }
  /// The line of a page that has this address.
  Line line_in(const PageInRam& page, PhysicalAddress address) const {
    const std::uint64_t at = address & 0xfff & ~std::uint64_t{line_bytes() - 1};
    return {page.live + at, page.shadow + at};
  }
  /// Whether an access to a line may make another one than the last that was fetched from the most
  /// recently used of its set.
  bool disturbs_fetch(std::uint64_t number) const {
    return !has_code_cache() && set_of(number) == set_of(fetched_line_) && number != fetched_line_;
  }

  void uncached_read(RecordType type, PhysicalAddress address, std::span<const std::uint8_t> bytes,
                     unsigned flags);
  void fetch_uncached(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                      bool sequential);
  void cached_read(RecordType type, PhysicalAddress address, std::span<const std::uint8_t> bytes);
  void write_back(std::uint64_t number, unsigned flags);
  void fill(Cache& cache, RecordType type, std::uint64_t number, unsigned flags);
  void write_allocate(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  bool changed_outside(std::uint64_t number, PhysicalAddress address,
                       std::span<const std::uint8_t> bytes);
  /// A read within one line that is held, and is as it is known: nothing of it is seen.
  bool is_plain_hit(Cache& cache, Line line, PhysicalAddress address,
                    std::span<const std::uint8_t> bytes) {
    const std::uint64_t number = address >> line_shift_;
    CacheSet& set = set_in(cache, number);
    const unsigned way = set.find(number);
    const std::uint64_t at = address & (line_bytes() - 1);
    if (way == kWays || !is_known(line, has_code_cache()) ||
        !are_equal(bytes.data(), line.known + at, bytes.size()))
      return false;
    if (locked_) make_own(number, way);
    set.use(way);
    return true;
  }
  void take_from_data(std::uint64_t number);
  void take_line(std::uint64_t number, Range own);
  void drop(Cache& cache, std::uint64_t number);
  void note(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  void say_left(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  void say_lone_bit(PhysicalAddress address, std::span<const std::uint8_t> bytes, Range own);
  bool may_be_mark(PhysicalAddress address, unsigned bit) const;
  unsigned foreign_bits(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                        Range own) const;

  // bus_snooping.cc
  bool ask_others(std::uint64_t number, bool takes);
  bool give(std::uint64_t number, bool takes);
  void make_own(std::uint64_t number, unsigned way);
  void take_from_others(PhysicalAddress address, std::uint32_t size);
  void show_other_master(PhysicalAddress address, std::span<const std::uint8_t> bytes);
  /// The flags of something that goes by the caches.
  unsigned with_lock(unsigned flags) const { return locked_ ? flags | kLock : flags; }
  /// Whether the bus shows who shares a line: with lines of the size that such captures have.
  bool shows_sharing() const { return model_ == CacheModel::pentium; }

  GuestMemory& memory_;
  RecordSink& sink_;
  const CacheModel model_;
  const unsigned line_shift_ = model_ == CacheModel::pentium ? 5 : 4;
  const unsigned set_mask_ = model_ == CacheModel::write_back ? 255 : 127;
  Cache data_, code_;
  bool cache_disabled_ = false;
  std::uint32_t window_begin_ = 0, window_bytes_ = 0;
  std::array<Range, 2> expected_;
  std::uint64_t fetched_line_ = kNoLine;   ///< number of the line that was fetched from last
  std::uint64_t fetched_dword_ = kNoLine;  ///< address of the dword in the fetch buffer
  std::array<std::uint8_t, 4> fetched_{};  ///< what is in it
  std::uint64_t external_ = 0;
  std::function<bool(PhysicalAddress)> holds_descriptor_ = [](PhysicalAddress) { return true; };
  std::unordered_set<PhysicalAddress> device_pages_;  ///< where more than a bit has been changed
  unsigned number_ = 0;
  std::vector<BusModel*> others_;  ///< of several processors
  bool locked_ = false;
};

}  // namespace citcat::monitor
