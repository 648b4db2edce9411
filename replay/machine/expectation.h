#pragma once
// When the judge of the run next needs to be called.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "replay/machine/cpu_context.h"
#include "x86/flag_effects.h"

namespace citcat {

/// What is expected of a machine whose judge judges blocks. For any other, `compares` is false and
/// nothing is expected. Before `next` the judge need not see ordinary code.
class Expectation {
 public:
  /// `cpu` must outlive the object.
  explicit Expectation(CpuContext& cpu)
      : compares(cpu.by_blocks && cpu.audience.judge() != nullptr),
        judge(compares ? cpu.audience.judge() : nullptr),
        expects_stores(compares && judge->expects_stores()),
        keeps_account(compares && judge->wants_account()),
        cpu_(cpu) {
    if (!compares) next = {~std::uint64_t{0}, 0};
  }

  const bool compares;
  BlockJudge* const judge;    ///< null where nothing is compared
  const bool expects_stores;  ///< every one
  const bool keeps_account;   ///< BlockJudge::wants_account()

  Position next;            ///< from here on it wants to be asked
  FlagEffect untold_flags;  ///< what instructions not reported to it did to the flags

  /// Asks the judge again from where on something is expected.
  void update() { next = judge->expected(); }
  bool is_now() const { return cpu_.position >= next; }
  /// fetch() and read() are called for what runs alone.
  bool tells_reads() const {
    return cpu_.wants_reads && (!compares || is_now() || cpu_.audience.wants_references());
  }
  /// And the judge is among those that are notified.
  bool judges_reads() const { return !compares || is_now(); }

 private:
  CpuContext& cpu_;
};

}  // namespace citcat
