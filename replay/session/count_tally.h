#pragma once
// Counts a run as a monitor does that counts something other than instructions, to find the
// boundaries at which an interrupt with such a count may be.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "events/recording.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

class CountTally final : public Observer {
 public:
  /// Where it is, to come back to.
  struct State {
    bool known = false;  ///< what the monitor counted before `begin` is known: `base`
    std::uint64_t base = 0;
    std::uint64_t begin = 0;      ///< instruction
    std::uint64_t transfers = 0;  ///< since then: branches taken, or blocks ended
    std::uint64_t doubtful = 0;   ///< since then: what may have been counted, or not
    std::size_t interrupts = 0;   ///< acknowledged so far
    /// A conditional branch of which is not known yet whether it jumped.
    struct Conditional {
      std::uint32_t next_eip = 0;  ///< where it goes on if not: of RIP the lower half, which is
                                   ///< enough, its target being 2 GiB away at most
      bool either = false;         ///< its target is there, too
    };
    std::optional<Conditional> conditional;
  };

  /// Begins with the recording's first count; all have the same unit.
  CountTally(const Recording& recording, const EventCount& first);
  /// For a recording that has counts.
  static std::optional<EventCount> first_count(const Recording& recording);
  Interest interest() const override { return Interest::changes().before_judged(); }
  void watch(const Machine& machine) override { machine_ = &machine; }

  /// Whether the monitor may have shown `count` at the boundary where the machine is.
  bool may_be(const EventCount& count) const;
  /// Whether it has shown `count` there if it never counted what is doubtful.
  bool is_plainly(const EventCount& count) const {
    return s_.known && range().least == count.value;
  }
  /// Whether it must have shown more.
  bool is_beyond(const EventCount& count) const;
  /// Whether it is known what the monitor showed at any place before.
  bool knows() const { return s_.known; }

  const State& state() const { return s_; }
  void restore(const State& state) { s_ = state; }

  void instruction(const ExecutedInstruction& e, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;

 private:
  struct Range {
    std::uint64_t least = 0, most = 0;
  };
  Range range() const;
  void settle(std::uint32_t eip);
  void take_count(std::uint64_t instruction);

  CountUnit unit_;
  /// Counts of acknowledges in order, of a recording in which nothing else interrupts.
  std::vector<std::optional<EventCount>> counts_;
  const Machine* machine_ = nullptr;
  State s_;
};

}  // namespace citcat
