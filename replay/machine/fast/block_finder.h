#pragma once
// Finds the block that runs next, and chains blocks that follow one another.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/handler_pages.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

class BlockFinder {
 public:
  /// All must outlive the object.
  BlockFinder(CpuContext& cpu, TierState& state, HandlerPages& pages, BlockStore& store);

  /// Begins a run. Chains of one privilege level connect blocks of one shape.
  void begin();
  /// The block at `eip`, or null where the tier must leave the instruction there.
  const Block* find(std::uint64_t eip, Policy policy);
  /// Chains lead to blocks of `policy` from here on: known targets of indirect branches that belong
  /// to another policy are forgotten.
  void chain(Policy policy);
  /// Chains `block`, which was just left, to the block that runs next.
  void link(const Block& block, Policy policy);
  /// The store of blocks is about to be cleared.
  void forget();

 private:
  const Block* look_up(std::uint64_t eip, Policy policy);
  void forget_ways(std::size_t privilege);

  CpuContext& cpu_;
  TierState& t_;
  HandlerPages& pages_;
  BlockStore& store_;
  std::array<CodeShape, TierState::kPrivileges> shapes_;  ///< blocks in State::jumps have these
  std::optional<Policy> chained_;                         ///< policy of those in State::jumps
  std::optional<Policy> chained_logged_;                  ///< policy of those in State::batch_jumps
  struct Known {
    const Block* block = &kNowhere;
    Policy policy;
  };
  using KnownBlocks = std::array<Known, 2 * kJumps>;
  /// Blocks found last, for policies whose blocks are not chained. Their shapes are in `shapes_`.
  std::vector<KnownBlocks> known_ = std::vector<KnownBlocks>(TierState::kPrivileges);
  /// link() found it, and the next find() asks for it again; or null.
  Known found_{nullptr, {}};
};

}  // namespace citcat::fast
