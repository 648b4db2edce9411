#pragma once
// Enters the handlers of a block, and settles where and how the last block was left.

#include <cstdint>
#include <vector>

#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

class BlockRunner {
 public:
  /// Both must outlive the object.
  BlockRunner(TierState& state, BlockStore& store);

  /// Runs `block` and the blocks that are chained to it. The first area is at `area`.
  void run(const Block& block, std::uint8_t* area);
  /// Runs `block` and the known blocks after it as a batch: at most `may_run` instructions, and no
  /// further block after the first `due` of them.
  void run_batch(const Block& block, std::uint32_t may_run, std::uint32_t due);
  /// Settles how the block in progress was left: TierState::eip is the next instruction. Gives the
  /// number of its instructions that ran.
  std::uint32_t settle();
  /// The handlers added what the block in progress did to the flags.
  bool is_noted(const Block& block) const;
  /// Adds what the first `count` instructions of a block, as they ran last, did to the flags.
  void note_flags(const Block& block, std::uint32_t count);

  /// Where a batch, or what passes, puts its addresses, 8 bytes for each. Outside 64-bit mode
  /// handlers store the lower halves and nothing ever stores the upper ones.
  std::uint8_t* area() { return (t_.shape.bits64 ? wide_area_ : area_).data(); }
  /// The first instruction of the last batch.
  std::uint64_t batch_first() const { return batch_first_; }

 private:
  TierState& t_;
  BlockStore& store_;
  std::vector<std::uint8_t> area_, wide_area_;
  std::uint64_t batch_first_ = 0;
};

}  // namespace citcat::fast
