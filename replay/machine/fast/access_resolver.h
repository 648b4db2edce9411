#pragma once
// Answers handlers that did not find a page in their tables.

#include <cstddef>
#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/block_reporter.h"
#include "replay/machine/fast/block_runner.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/handler_pages.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

/// Fills in the page, or has the store made alone, or leaves the instruction.
class AccessResolver final : public MissResolver {
 public:
  /// All must outlive the object.
  AccessResolver(CpuContext& cpu, TierState& state, HandlerPages& pages, BlockStore& store,
                 BlockRunner& runner, BlockReporter& reporter);

  Answer resolve(State& s, const Op* op) override;
  bool store_made(State& s) override;

 private:
  bool code_is_there(const Block& block);

  CpuContext& cpu_;
  TierState& t_;
  HandlerPages& pages_;
  BlockStore& store_;
  BlockRunner& runner_;
  BlockReporter& reporter_;
  struct {
    PhysAddr at;
    std::uint32_t size = 0;
    std::size_t index = 0;
  } alone_;  ///< the store that is made alone
};

}  // namespace citcat::fast
