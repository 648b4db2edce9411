#pragma once
// Lines of memory in the order of their last uses, to know how many others were used since.

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace citcat::tools {

/// A list with the line used last in front. How far behind a line is, is kept as a power of two: of
/// each, the last line that is near enough is marked, and goes over the mark when another line
/// comes to the front (Y. H. Kim, M. Hill and D. Wood, Implementing Stack Simulation for
/// Highly-Associative Memories, SIGMETRICS 1991). So a use takes as many steps as its distance has
/// bits.
///
/// A line that is taken away leaves a hole, which what is used next fills: caches that had the line
/// have room.
class ReuseStack {
 public:
  static constexpr unsigned kNew = ~0u;
  /// Bits of a distance, at most.
  static constexpr unsigned kMostBits = 33;

  /// `shift`: lines have 1 << shift bytes.
  explicit ReuseStack(unsigned shift)
      : leaves_((std::size_t{1} << (32 - shift) >> kLeafBits) + 1) {}

  /// The bits of the number of places before that of `line`, which are as many different lines used
  /// since it was where none was taken away: 0 where it was the last, 1 for one, 2 for two and
  /// three,
  /// ...; kNew where it has no place. It has the first one then.
  unsigned use(std::uint64_t line) {
    std::uint32_t& node = node_of(line);
    if (node == front_ && node != kNone) [[likely]]
      return 0;
    if (!holes_.empty()) [[unlikely]]
      return use_with_holes(node, line);
    return node != kNone ? bring(node) : add(node, line);
  }
  /// Another bus master wrote it. Nothing where it has no place.
  void take_away(std::uint64_t line);
  /// All lines, that used last at the end, where none was taken away.
  std::vector<std::uint64_t> lines() const;
  /// Lines and holes.
  std::uint64_t size() const { return nodes_.size() - 1; }

 private:
  static constexpr std::uint32_t kNone = 0;  ///< no node
  static constexpr unsigned kLeafBits = 12;
  using Leaf = std::array<std::uint32_t, std::size_t{1} << kLeafBits>;
  struct Node {
    std::uint64_t line = 0;
    std::uint32_t newer = kNone, older = kNone;
    unsigned bits = 0;       ///< of its distance
    std::uint64_t time = 0;  ///< of its last use
  };
  /// A hole's time, and its node.
  using Hole = std::pair<std::uint64_t, std::uint32_t>;

  std::uint32_t& node_of(std::uint64_t line) {
    const std::uint64_t number = line >> kLeafBits;
    std::unique_ptr<Leaf>& leaf =
        number < leaves_.size() ? leaves_[number] : leaves_beyond_[number];
    if (leaf == nullptr) [[unlikely]]
      leaf = std::make_unique<Leaf>();
    return (*leaf)[line % leaf->size()];
  }
  unsigned bring(std::uint32_t number);
  unsigned add(std::uint32_t& number, std::uint64_t line);
  unsigned use_with_holes(std::uint32_t& number, std::uint64_t line);
  void move_marks(unsigned bits, std::uint32_t front);
  void put_in_front(std::uint32_t number);

  std::vector<std::unique_ptr<Leaf>> leaves_;  ///< nodes by line, of the first 4 GiB
  std::unordered_map<std::uint64_t, std::unique_ptr<Leaf>> leaves_beyond_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::uint32_t front_ = kNone, last_ = kNone;
  std::uint64_t time_ = 0;           ///< uses that were not of the line in front
  std::priority_queue<Hole> holes_;  ///< the one nearest to the front first
  /// By bits: the last line with fewer, which is the next to have so many; kNone where there are
  /// not so many lines.
  std::array<std::uint32_t, kMostBits + 1> marks_{};
};

}  // namespace citcat::tools
