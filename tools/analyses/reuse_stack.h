#pragma once
// Lines of memory in the order of their last uses, to know how many others were used since.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace citcat::tools {

/// A list with the line used last in front. How far behind a line is, is kept as a power of two: of
/// each, the last line that is near enough is marked, and goes over the mark when another line
/// comes to the front (Y. H. Kim, M. Hill and D. Wood, Implementing Stack Simulation for
/// Highly-Associative Memories, SIGMETRICS 1991). So a use takes as many steps as its distance has
/// bits.
class ReuseStack {
 public:
  static constexpr unsigned kNew = ~0u;
  /// Bits of a distance, at most.
  static constexpr unsigned kMostBits = 33;

  /// `shift`: lines have 1 << shift bytes, of addresses of 32 bits.
  explicit ReuseStack(unsigned shift)
      : leaves_((std::size_t{1} << (32 - shift) >> kLeafBits) + 1) {}

  /// The bits of the number of different lines that were used since `line` was: 0 where it was the
  /// last, 1 for one, 2 for two and three, ...; kNew where it is used first.
  unsigned use(std::uint32_t line) {
    std::uint32_t& node = node_of(line);
    if (node == front_ && node != kNone) [[likely]]
      return 0;
    return node != kNone ? bring(node) : add(node, line);
  }
  /// All lines, that used last at the end.
  std::vector<std::uint32_t> lines() const;
  std::uint64_t size() const { return nodes_.size() - 1; }

 private:
  static constexpr std::uint32_t kNone = 0;  ///< no node
  static constexpr unsigned kLeafBits = 12;
  using Leaf = std::array<std::uint32_t, std::size_t{1} << kLeafBits>;
  struct Node {
    std::uint32_t line = 0;
    std::uint32_t newer = kNone, older = kNone;
    unsigned bits = 0;  ///< of its distance
  };

  std::uint32_t& node_of(std::uint32_t line) {
    std::unique_ptr<Leaf>& leaf = leaves_[line >> kLeafBits];
    if (leaf == nullptr) [[unlikely]]
      leaf = std::make_unique<Leaf>();
    return (*leaf)[line % leaf->size()];
  }
  unsigned bring(std::uint32_t number);
  unsigned add(std::uint32_t& number, std::uint32_t line);
  void move_marks(unsigned bits, std::uint32_t front);
  void put_in_front(std::uint32_t number);

  std::vector<std::unique_ptr<Leaf>> leaves_;  ///< nodes by line
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::uint32_t front_ = kNone, last_ = kNone;
  /// By bits: the last line with fewer, which is the next to have so many; kNone where there are
  /// not so many lines.
  std::array<std::uint32_t, kMostBits + 1> marks_{};
};

}  // namespace citcat::tools
