#pragma once
// The pages that handlers access, and the code that they enter, without calling anything.

#include <cstdint>
#include <optional>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/tier_state.h"

namespace citcat::fast {

/// Keeps the tables of State::reads, ::writes and ::code_pages a subset of the Mmu's TLB.
class HandlerPages {
 public:
  /// `exact`: memory is looked at byte by byte. All must outlive the object.
  HandlerPages(CpuContext& cpu, TierState& state, bool exact);

  /// The Mmu lost a translation, or may answer otherwise from now on.
  void forget_translations() { stale_ = true; }
  /// Drops the pages that handlers know where the Mmu, or what is defined, may have changed.
  void check();
  /// Handlers know no page for stores any more.
  void forget_writes();
  /// Brings a page into the tables of the handlers. False where that has another effect.
  bool fill(LinearAddr linear, bool write);
  /// Finds the frame of a page of code. False where looking it up has an effect.
  bool find_code(LinearAddr linear, PhysAddr& frame);

 private:
  void forget();
  std::optional<Translation> translate(LinearAddr linear, Access access);

  CpuContext& cpu_;
  TierState& t_;
  const bool exact_;
  std::uint32_t epoch_ = 0, mask_epoch_ = 0;
  bool stale_ = true;
};

}  // namespace citcat::fast
