#pragma once
// Reports to the observers which blocks ran, how often each ran, and the trail of the last ones.

#include <cstdint>
#include <span>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/block_runner.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/block_trail.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

class BlockReporter {
 public:
  /// All must outlive the object.
  BlockReporter(CpuContext& cpu, TierState& state, BlockRunner& runner, BlockStore& store);

  bool references = false;  ///< an observer of blocks needs what they read and store

  /// Reports the batch, of whose last block `of_last` instructions ran.
  void report_batch(std::uint32_t of_last, std::uint64_t first);

  // For observers who do not receive each block: counts and the trail.
  void note_batch(std::uint32_t of_last, std::uint64_t first);
  /// Corrects the count of the block in progress, which counted itself as a whole.
  void uncount_rest();
  /// Keeps the last blocks of a run that recorded its trail.
  void keep_trail();
  /// Reports all counts.
  void report_counts();
  /// Reports the stretch of instructions since the last report, with the trail of its end.
  void report_trail() { trail_.tell(cpu_.audience); }
  /// Where the accesses of the batch's block `number` end in State::log.
  std::uint32_t end_of_log(std::uint32_t number) const {
    const State& s = *t_.in_use;
    return number + 1 < s.batched ? s.batch[number + 1].logged : s.logged;
  }
  /// Instructions from `from` to `to` have passed.
  void pass(std::uint64_t from, std::uint64_t to) { trail_.pass(from, to); }

  /// Page walks belong to an access of `op` while the object exists.
  class WalksFor {
   public:
    WalksFor(BlockReporter& reporter, const Op* op) : reporter_(reporter) {
      reporter_.walks_for_ = op;
    }
    ~WalksFor() { reporter_.walks_for_ = nullptr; }
    WalksFor(const WalksFor&) = delete;
    WalksFor& operator=(const WalksFor&) = delete;

   private:
    BlockReporter& reporter_;
  };
  /// A page walk read that entry of a table. Within a block it is reported with the block, else
  /// now.
  void note_walk(PhysAddr entry, std::uint32_t size);
  /// Reports the walks that were not reported with a block.
  void report_walks();

 private:
  void report_blocks(std::uint32_t blocks, std::uint64_t first);
  void report_part(std::uint32_t number, std::uint32_t count, std::uint64_t first);
  std::span<const DataReference> references_of(std::uint32_t number, std::uint32_t count);
  void keep_trail_of_batch();
  void keep_in_trail(const Block& block, std::uint32_t count, std::uint64_t first,
                     const std::uint8_t* area);

  CpuContext& cpu_;
  TierState& t_;
  BlockRunner& runner_;
  BlockStore& store_;
  BlockTrail trail_;  ///< of instructions that were not reported block by block
  std::vector<const Block*> overcounted_;        ///< Block::executions has one too many, each time
  std::vector<DataReference> block_references_;  ///< of one block with its walks
  std::vector<ExecutedBlock> batch_blocks_;
  struct NotedWalk {
    PhysAddr entry;
    std::uint32_t size = 0;
    std::uint32_t block = 0;        ///< number in the batch
    std::uint32_t logged = 0;       ///< number of accesses of the batch before it
    std::uint32_t instruction = 0;  ///< number in the block
  };
  std::vector<NotedWalk> walks_;   ///< of the batch in progress
  const Op* walks_for_ = nullptr;  ///< operation whose access is being found; null: none
};

}  // namespace citcat::fast
