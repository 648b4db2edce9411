#pragma once
// A cache that counts the lines that it fills and writes back.

#include <array>
#include <cstdint>
#include <utility>

#include "replay/verify/cache_model.h"
#include "tools/analyses/cache_feed.h"

namespace citcat::tools {

/// In percent; 0 of nothing.
double percent(std::uint64_t part, std::uint64_t whole);

/// Counts the lines that it fills and writes back in a run (CacheFeed).
class CountedCache {
 public:
  /// The descriptor must outlive it.
  CountedCache(const CacheDescriptor& descriptor, CachedMemory memory)
      : model_(descriptor, std::move(memory)) {}

  void fetch_line(PhysAddr a) { model_.fetch_line(a); }
  void fetch(PhysAddr a, std::uint32_t size) { model_.fetch(a, size); }
  void read(PhysAddr a, std::uint32_t size) { model_.read(a, size); }
  void write(PhysAddr a, std::uint32_t size) { model_.write(a, size); }
  void flush() { model_.flush(); }
  void snoop_write(PhysAddr a, std::uint32_t size) { model_.snoop_write(a, size); }
  void set_disabled(bool disabled) { model_.set_disabled(disabled); }
  std::uint64_t line_of(PhysAddr a) const { return model_.line_of(a); }
  bool has_moved() { return !model_.traffic().empty(); }
  std::uint32_t repeated_line() const { return model_.descriptor().line_bytes; }
  void enter(unsigned) {}
  void settle(unsigned part) {
    if (model_.traffic().empty()) [[likely]]
      return;
    const unsigned counts = part == kUncounted ? 0 : 1;
    for (const CacheTraffic& t : model_.traffic()) {
      switch (t.kind) {
        case CacheTraffic::Kind::code_fill:
          ++fills_[part].code;
          break;
        case CacheTraffic::Kind::data_fill:
          ++fills_[part].data;
          break;
        case CacheTraffic::Kind::write_back:
          write_backs_ += counts;
          break;
        case CacheTraffic::Kind::snoop_write_back:
          snoop_write_backs_ += counts;
          break;
      }
    }
    model_.traffic().clear();
  }

  const CacheDescriptor& descriptor() const { return model_.descriptor(); }
  /// By part.
  const std::array<CacheFills, 3>& fills() const { return fills_; }
  void report(Report& out, const CacheParts& parts, std::uint64_t flush_every) const;

 private:
  CacheModel model_;
  std::array<CacheFills, 3> fills_;
  std::uint64_t write_backs_ = 0, snoop_write_backs_ = 0;
};

}  // namespace citcat::tools
