#pragma once
// What the sink that compares the run wants to be told next.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "replay/machine/block_template.h"
#include "replay/machine/cpu_context.h"

namespace citcat {

/// Of a machine whose sink wants Detail::comparison; of any other `compares` is false, and nothing
/// is ever expected. Before `next` the sink need not be told of plain code.
class Expectation {
 public:
  /// `cpu` must outlive the object.
  explicit Expectation(CpuContext& cpu)
      : compares(cpu.by_blocks && cpu.sink != nullptr && cpu.sink->detail() == Detail::comparison),
        sink(compares ? cpu.sink->comparing() : nullptr),
        expects_stores(compares && sink->expects_stores()),
        looks_ahead(compares && sink->looks_ahead()),
        keeps_account(compares && sink->wants_account()),
        cpu_(cpu) {}

  const bool compares;
  Sink* const sink;           ///< that compares
  const bool expects_stores;  ///< every one
  const bool looks_ahead;     ///< it may agree with a block before that runs
  const bool keeps_account;   ///< Sink::wants_account()

  Position next;                  ///< from here on it wants to be asked
  bool block_compared = false;    ///< the block in progress is
  std::uint64_t quiet_until = 0;  ///< unless it is, blocks that end before need no questions
  FlagEffect untold_flags;        ///< what instructions it was not told of did to the flags

  /// Asks the sink anew from where on something is expected.
  void update() {
    next = sink->expected();
    find_quiet();
  }
  void find_quiet() {
    quiet_until = block_compared ? 0 : std::min(cpu_.until.instruction, next.instruction);
  }
  bool is_now() const { return cpu_.position >= next; }
  /// Something is expected of `block`, should it end before instruction `end`.
  bool has_something_due(const BlockTemplate& block, std::uint64_t end) const {
    return end > next.instruction || (expects_stores && block.whole_stores);
  }
  bool tells_reads() const { return cpu_.wants_reads && (!compares || is_now()); }

 private:
  CpuContext& cpu_;
};

}  // namespace citcat
