#pragma once
// Conditions for the boundary at which an interrupt was taken, besides being between the right
// transactions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/infer/places/candidates.h"
#include "replay/infer/places/interrupt_evidence.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

/// One for every interrupt, in the schedule's order.
using InterruptSurroundings = std::vector<InterruptEvidence>;

/// Interrupts are enabled, the count is the capture's, and what is stored next may be the frame.
class FrameFilter {
 public:
  FrameFilter(const PlacementRun& run, const InterruptSurroundings& surroundings)
      : run_(run), surroundings_(surroundings) {}
  bool fits(std::size_t interrupt) const;

 private:
  const PlacementRun& run_;
  const InterruptSurroundings& surroundings_;
};

/// Registers are what the processor, or the handler, stored of them.
class RegisterFilter {
 public:
  RegisterFilter(PlacementRun& run, const InterruptSurroundings& surroundings)
      : run_(run), surroundings_(surroundings) {}
  /// Begins with another interrupt; nothing is known of its registers.
  void begin(std::size_t interrupt);
  /// They were looked for.
  bool learned() const { return learned_; }
  /// Lets the handler run from the first boundary that fits: whatever registers it saves on the way
  /// that it takes from all of them say which of them it was. An SMI stores them itself. Leaves
  /// the replay elsewhere.
  void learn(const Candidates& found);
  bool empty() const { return registers_.empty(); }
  void forget() { registers_.clear(); }
  bool fits() const;

 private:
  /// What a register held at the interrupt, as the handler or the processor stored it.
  struct Known {
    enum class Kind : std::uint8_t { general, segment, eip };
    Kind kind = Kind::general;
    std::uint8_t number = 0;  ///< Gpr or SegmentRegister
    std::uint64_t mask = 0, value = 0;
  };
  void learn_saved_state();
  void learn_saves(const Candidates& found);
  void know(Known r, PhysAddr stored, std::uint32_t size);
  std::uint64_t now(const Known& r) const;

  PlacementRun& run_;
  const InterruptSurroundings& surroundings_;
  std::size_t interrupt_ = 0;
  bool learned_ = false;
  std::vector<Known> registers_;
};

/// What was read since the last store is what the bus shows being read before the interrupt, in any
/// order. Where the capture has every read.
class ReadFilter {
 public:
  ReadFilter(PlacementRun& run, const InterruptSurroundings& surroundings)
      : run_(run), surroundings_(surroundings) {}
  /// Begins with another interrupt; nothing is asked until expect().
  void begin() { asks_ = false; }
  /// The replay is at the beginning of the window, and does so again afterwards.
  void expect(std::size_t interrupt, const PlacementRun::Place& window);
  bool asks() const { return asks_; }
  void forget() { asks_ = false; }
  bool fits() const;
  /// More was read than can have been.
  bool is_passed() const { return asks_ && reads().size() > expected_.size(); }

 private:
  const std::vector<std::uint64_t>& reads() const { return run_.gate().progress().reads; }
  std::uint32_t first_read_of_delivery(std::size_t interrupt, const PlacementRun::Place& window);

  PlacementRun& run_;
  const InterruptSurroundings& surroundings_;
  bool asks_ = false;
  std::vector<std::uint64_t> expected_;  ///< addresses, sorted
};

}  // namespace citcat
