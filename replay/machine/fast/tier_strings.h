#pragma once
// String instructions of the fast tier. They run between blocks.

#include <array>
#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/block_reporter.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/handler_pages.h"
#include "replay/machine/fast/string_loop.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

/// Runs a string instruction for the tier, and reports its iterations to the observers.
class TierStrings {
 public:
  /// All must outlive the object.
  TierStrings(CpuContext& cpu, Expectation& expectation, TierState& state, HandlerPages& pages,
              BlockStore& store, BlockReporter& reporter);

  /// Runs the string instruction at the end of `block`, which was left there. False where the tier
  /// must leave the next instruction, or iteration.
  bool run(const Block& block);

 private:
  StringPage find_page(LinearAddr linear, bool write);
  void note_store(PhysAddr at, std::uint32_t size, const PhysAddr* from);
  void report_fetch(const Block& block);
  void report_iterations(const DecodedInstruction& info,
                         const std::array<StringLoop::Operand, 2>& first, std::uint32_t count,
                         std::int32_t step);

  CpuContext& cpu_;
  Expectation& expectation_;
  TierState& t_;
  HandlerPages& pages_;
  BlockStore& store_;
  BlockReporter& reporter_;
  StringLoop loop_;
  const DecodedInstruction* info_ = nullptr;  ///< the instruction in progress
};

}  // namespace citcat::fast
