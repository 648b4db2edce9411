#pragma once
// The fast tier: ordinary code runs in an interpreter of our own.
//
// It takes the processor's state from the engine, runs as many instructions as it can, and gives it
// back exactly as it is before the next one. Rare instructions, and those that fault, change modes
// or touch devices, are left to the engine and the units of the machine, and so is any access whose
// page walk has more effect than a TLB entry.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/access_resolver.h"
#include "replay/machine/fast/block_finder.h"
#include "replay/machine/fast/block_judging.h"
#include "replay/machine/fast/block_reporter.h"
#include "replay/machine/fast/block_runner.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/handler_pages.h"
#include "replay/machine/fast/tier_state.h"
#include "replay/machine/fast/tier_strings.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/store_trap.h"

namespace citcat {

class DebugUnit;

/// Between runs of the engine. Owned by the machine.
class FastTier final : public StoreWatcher {
 public:
  /// All must outlive the object.
  FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug);

  /// Runs from where the processor is, up to CpuContext::until, as far as it can.
  void run();

  /// Memory has changed differently from by what runs here.
  void stored(PhysAddr at, std::uint32_t size) override;
  /// The Mmu lost a translation, or may answer otherwise from now on.
  void forget_translations() { pages_.forget_translations(); }
  const fast::BlockStore& blocks() const { return store_; }
  /// Reports what was only counted so far.
  void tell_counts() { reporter_.report_counts(); }
  /// A page walk read that entry of a table. Within a block it is reported with the block, else
  /// now.
  void note_walk(PhysAddr entry, std::uint32_t size) { reporter_.note_walk(entry, size); }

 private:
  /// How a stretch of blocks came to its end.
  enum class Stretch : std::uint8_t {
    ended,     ///< more can be run
    too_long,  ///< nothing ran: the next block goes beyond the limit
    left,      ///< the tier does not execute the next instruction
  };

  bool applies();
  void begin();
  void end();

  // What the handlers record, for whom.
  void attend();
  void set_trap();
  bool looks_for_trap() const;
  fast::Policy policy_for(fast::Keep keep) const { return {keep, exact_}; }
  fast::Policy passing_policy() const;
  fast::Policy with_trap(fast::Policy policy) const;
  std::int64_t room_to_ask() const;

  void run_quietly();
  void run_judged();
  bool judge_blocks();
  bool is_quiet_string(const fast::Block& block);
  Stretch run_stretch(bool whole_blocks);
  Stretch run_recorded(const RecordRoom& room, bool whole_blocks);
  Stretch run_passing(bool whole_blocks);
  Stretch run_passing_blocks(const fast::Block& block, fast::Policy policy, std::int64_t may_run);
  Stretch run_observed(bool whole_blocks);
  Stretch run_observed_batch(const fast::Block& block, fast::Policy policy);
  std::uint32_t settle();
  Stretch after_blocks(fast::Policy policy);
  Stretch behind(const fast::Block& block, fast::Policy policy);
  void make_room();

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  const bool exact_;       ///< a comparison: definedness is tracked byte by byte
  StoreTrap* const trap_;  ///< the judge's; null where it sets none
  fast::Policy policy_;    ///< where blocks are reported and the judge expects nothing
  fast::TierState t_{cpu_};
  fast::BlockStore store_;
  fast::HandlerPages pages_;
  fast::BlockFinder finder_;
  fast::BlockRunner runner_;
  fast::BlockReporter reporter_;
  fast::AccessResolver resolver_;
  fast::BlockJudging judging_;
  fast::TierStrings strings_;
};

}  // namespace citcat
