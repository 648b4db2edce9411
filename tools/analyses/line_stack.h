#pragma once
// Lines in the order in which they were touched last: the stack of a cache that holds any line
// anywhere and lets go of the one not touched for longest.

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

namespace citcat::tools {

/// How many were touched behind one is a sum of a Fenwick tree over times (Bennett and Kruskal, LRU
/// Stack Processing, IBM J. Res. Dev. 19(4), 1975). A line that is taken away leaves a hole, which
/// what is touched next fills: caches that had the line have room.
class LineStack {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// How many places lie before that of `line`, which are as many different lines touched since it
  /// was where none was taken away; kNever where it is not in the stack. It is the first one then.
  std::uint64_t touch(std::uint32_t line);
  /// Another bus master wrote it. Nothing where it is not in the stack.
  void take_away(std::uint32_t line);
  /// All lines, that touched last at the end.
  std::vector<std::uint32_t> lines() const;
  /// Lines in the stack.
  std::uint64_t size() const { return time_of_.size(); }

 private:
  static constexpr std::uint64_t kNoLine = ~std::uint64_t{0}, kHole = kNoLine - 1;

  void add(std::size_t time, std::int32_t n);
  std::uint64_t sum(std::size_t time) const;
  void compact();
  void put_on_top(std::uint32_t line);
  void make_hole(std::size_t time);
  void vacate(std::size_t time);

  std::unordered_map<std::uint32_t, std::size_t> time_of_;
  std::size_t capacity_ = 0, next_ = 0;
  std::vector<std::uint32_t> tree_;  ///< over times: places of the stack
  std::vector<std::uint64_t> line_at_;
  std::priority_queue<std::size_t> holes_;  ///< their times
  std::uint64_t places_ = 0;                ///< lines and holes
  std::uint32_t last_line_ = 0;
  bool knows_last_ = false;
};

}  // namespace citcat::tools
