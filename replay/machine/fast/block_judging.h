#pragma once
// The judge's side of the fast tier: asks it what may run, hands it what a batch of blocks did, and
// undoes a batch that it rejects.

#include <cstdint>
#include <span>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/block_reporter.h"
#include "replay/machine/fast/tier_state.h"
#include "replay/machine/store_trap.h"

namespace citcat::fast {

class BlockJudging {
 public:
  /// All must outlive the object.
  BlockJudging(CpuContext& cpu, Expectation& expectation, TierState& state,
               const BlockReporter& reporter, const StoreTrap* trap);

  /// The state before a batch.
  struct Undo {
    decltype(State::r) registers;
    LazyFlags flags;
    std::uint32_t system_flags = 0;
    std::uint64_t eip = 0;
    FlagEffect untold;
  };
  Undo undo() const;

  /// The judge need not see instructions before this one.
  std::uint64_t quiet_end() const;
  /// No block is judged that begins at `first`: the judge rejected one there, and the engine of
  /// record executes its instructions one by one.
  bool is_careful(std::uint64_t first) const { return first < careful_until_; }
  /// How many instructions may run from `first` on, where `block` is, before the judge sees them:
  /// at least the whole block, or none. `most_asked` bounds them.
  BlockJudge::BatchRoom ask(const Block& block, std::uint64_t first, std::int64_t most_asked);
  /// Hands the judge the first `done` instructions of the batch. False: they are to be undone.
  bool agrees(std::uint32_t done, std::uint64_t first);
  /// Undoes the `done` instructions of the batch. Then its blocks run one by one, and a block that
  /// ran alone runs instruction by instruction.
  void take_back(const Undo& undo, std::uint64_t first, std::uint32_t done);

 private:
  /// Fills `judged_stores_` with what the batch stored, and `judged_reads_` with those of its reads
  /// that are `wanted`.
  std::span<const citcat::BlockStore> gather_accesses(const InstructionNumbers& wanted);

  CpuContext& cpu_;
  Expectation& expectation_;
  TierState& t_;
  const BlockReporter& reporter_;
  const StoreTrap* const trap_;      ///< the judge's; null where it sets none
  std::uint64_t careful_until_ = 0;  ///< no block is judged before this instruction
  std::uint64_t alone_until_ = 0;    ///< each is judged by itself before this one
  std::vector<JudgedPart> judged_parts_;
  std::vector<citcat::BlockStore> judged_stores_;  ///< only the first few are valid
  std::vector<BlockRead> judged_reads_;
};

}  // namespace citcat::fast
