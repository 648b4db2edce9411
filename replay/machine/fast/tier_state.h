#pragma once
// The processor's state while the fast tier runs. It is loaded from the engine and stored there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/lowering.h"

namespace citcat::fast {

/// Holds the state of one run of the tier: from take() to give_back().
class TierState {
 public:
  /// The supervisor, the user, and the supervisor who reaches the user's pages by EFLAGS.AC.
  static constexpr std::size_t kPrivileges = 3;

  /// `cpu` must outlive the object.
  explicit TierState(CpuContext& cpu);

  /// The upper half of a register is not zero outside 64-bit mode. The first block would lose it.
  bool keeps_upper_halves() const;
  /// Takes the state over from the engine.
  void take();
  /// Gives it back, before the instruction at `eip`.
  void give_back();
  /// The next instruction's number.
  std::uint64_t position() const { return limit - static_cast<std::uint64_t>(in_use->left); }
  /// Which of `states` is in use.
  std::size_t privilege() const {
    return in_use == states[0].get() ? 0 : in_use == states[1].get() ? 1 : 2;
  }

  State* in_use = nullptr;  ///< one of `states`
  CodeShape shape;
  std::uint64_t eip = 0;
  std::uint32_t iteration = 0;  ///< of the string instruction at `eip`
  std::uint64_t limit = 0;      ///< the first instruction that this run does not execute
  std::array<std::unique_ptr<State>, kPrivileges> states;  ///< one for each privilege

 private:
  void take_segments();
  void take_vectors();
  void take_segments_of_64_bits();
  std::uint64_t general_register(int i) const {
    return shape.bits64 ? cpu_.engine.wide().gpr(i) : cpu_.engine.gpr(i);
  }
  int general_registers() const { return shape.bits64 ? 16 : 8; }

  CpuContext& cpu_;
};

/// Bounds the run to `may_run` instructions while the object exists.
class ShorterRun {
 public:
  ShorterRun(TierState& state, std::int64_t may_run)
      : t_(state), s_(*state.in_use), beyond_(s_.left - may_run) {
    s_.left -= beyond_;
    t_.limit -= static_cast<std::uint64_t>(beyond_);
  }
  ~ShorterRun() {
    s_.left += beyond_;
    t_.limit += static_cast<std::uint64_t>(beyond_);
  }
  ShorterRun(const ShorterRun&) = delete;
  ShorterRun& operator=(const ShorterRun&) = delete;

 private:
  TierState& t_;
  State& s_;
  const std::int64_t beyond_;
};

}  // namespace citcat::fast
