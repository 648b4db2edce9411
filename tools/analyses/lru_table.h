#pragma once
// A set-associative table with true LRU. For a later part of a run it does not know its contents at
// the beginning, and finds out what it can.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat::tools {

/// A set with fewer than `ways` known tags holds at least these, which are its latest. Whether any
/// other tag is there the table before tells (Heidelberger and Stone, Parallel Trace-Driven Cache
/// Simulation by Time Partitioning, WSC 1990). Such accesses are kept.
class LruTable {
 public:
  /// `known`: it is empty at the beginning.
  LruTable(std::size_t sets, std::size_t ways, bool known)
      : sets_(sets), ways_(ways), known_(sets, known ? 1 : 0) {}

  /// Looks `tag` up, and puts it in. Whether it was there; nullopt where that is not known yet: it
  /// is then told to the caller of follow(), with `kind`.
  std::optional<bool> access(std::size_t set, std::uint64_t tag, std::uint8_t kind) {
    std::vector<std::uint64_t>& tags = sets_[set];
    if (!tags.empty() && tags.front() == tag) return true;
    const auto found = std::find(tags.begin(), tags.end(), tag);
    if (found != tags.end()) {
      std::rotate(tags.begin(), found, found + 1);
      return true;
    }
    tags.insert(tags.begin(), tag);
    const bool known = known_[set] != 0;
    if (!known) unsettled_.push_back({set, tag, kind});
    if (tags.size() > ways_) tags.pop_back();
    if (tags.size() == ways_) known_[set] = 1;
    return known ? std::optional<bool>(false) : std::nullopt;
  }
  void flush() {
    for (std::vector<std::uint64_t>& tags : sets_) tags.clear();
    std::fill(known_.begin(), known_.end(), std::uint8_t{1});
  }
  /// `later` saw the next part of the run. `settle(kind, hit)` for each of its accesses of which
  /// that was not known.
  template <class F>
  void follow(const LruTable& later, F&& settle) {
    for (const Unsettled& u : later.unsettled_) {
      const auto hit = access(u.set, u.tag, u.kind);
      if (hit) settle(u.kind, *hit);
    }
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      std::vector<std::uint64_t> tags = later.sets_[s];
      if (later.known_[s] == 0) {
        for (const std::uint64_t tag : sets_[s]) {
          const bool there = std::find(tags.begin(), tags.end(), tag) != tags.end();
          if (tags.size() < ways_ && !there) tags.push_back(tag);
        }
      } else {
        known_[s] = 1;
      }
      sets_[s] = std::move(tags);
    }
  }
  void save(ByteWriter& out) const {
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      out.u8(known_[s]);
      out.varint(sets_[s].size());
      for (const std::uint64_t tag : sets_[s]) out.varint(tag);
    }
    out.varint(unsettled_.size());
    for (const Unsettled& u : unsettled_) {
      out.varint(u.set);
      out.varint(u.tag);
      out.u8(u.kind);
    }
  }
  void load(ByteReader& in) {
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      known_[s] = in.u8("whether a set is known") != 0 ? 1 : 0;
      sets_[s].resize(in.count("tags of a set", ways_));
      for (std::uint64_t& tag : sets_[s]) tag = in.varint("tag");
    }
    const std::size_t count = in.count("accesses not settled", sets_.size() * (ways_ + 1));
    for (std::size_t i = 0; i < count; ++i) {
      Unsettled& u = unsettled_.emplace_back();
      u.set = in.count("set", sets_.size() - 1);
      u.tag = in.varint("tag");
      u.kind = in.u8("kind");
    }
  }

 private:
  struct Unsettled {
    std::size_t set = 0;
    std::uint64_t tag = 0;
    std::uint8_t kind = 0;
  };
  std::vector<std::vector<std::uint64_t>> sets_;  ///< tags, the latest first
  std::size_t ways_;
  std::vector<std::uint8_t> known_;
  std::vector<Unsettled> unsettled_;  ///< in their order
};

}  // namespace citcat::tools
