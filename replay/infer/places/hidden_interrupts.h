#pragma once
// Interrupts whose place the bus does not show: those of a device on the processor's chip, known
// only by their handler's marker, and NMI, which the processor may take some time after its pin
// rises. The replay runs on without the interrupt; where it diverges from the evidence, the
// processor had begun to push its frame.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "replay/infer/places/candidate_window.h"
#include "replay/infer/places/candidates.h"
#include "replay/infer/places/loop_detector.h"
#include "replay/infer/places/placement_run.h"
#include "replay/infer/places/store_order.h"
#include "replay/infer/places/trial_decider.h"

namespace citcat {

class HiddenInterrupts {
 public:
  /// All but `evidence` must outlive the object. Changes `surroundings` to those of the stores that
  /// an interrupt is tried at, and anchors in the run's schedule likewise.
  HiddenInterrupts(PlacementRun& run, const EvidenceSource& evidence,
                   InterruptSurroundings& surroundings, CandidateWindow& window,
                   TrialDecider& trials);

  struct Found {
    enum class Kind : std::uint8_t { nowhere, absent, place };
    Kind kind = Kind::nowhere;
    Candidates candidates;  ///< those tried last; of a place, what is left of them
    Placement placement = Placement::none;
  };
  /// Looks for the place of this one, from where the replay is. Where the program comes to the
  /// marker by itself there was none, and the replay is there.
  Found find(std::size_t interrupt);
  /// What comes next may lie before what was asked for last.
  void restart() {
    if (order_) order_->restart();
  }

 private:
  std::uint64_t run_without();
  bool watch(Position now);
  bool passed_marker() const;
  void keep_place(Position now);
  const PlacementRun::Place* place_before(const BusAnchor& anchor) const;
  Found find_at_store(const StoreOrder::Access& access, const PlacementRun::Place& before);
  const Interrupt& target() const { return run_.interrupt(interrupt_); }

  PlacementRun& run_;
  InterruptSurroundings& surroundings_;
  CandidateWindow& window_;
  TrialDecider& trials_;
  std::unique_ptr<StoreOrder> order_;  ///< null behind a cache
  LoopDetector loop_;
  std::size_t interrupt_ = 0;
  std::vector<PlacementRun::Place> places_;  ///< the beginning and the latest on the way
  std::optional<Divergence> left_;           ///< where the run without it diverged
  std::uint64_t next_place_ = 0;             ///< instruction
  std::uint64_t quiet_since_ = 0;            ///< instruction without stores and port accesses since
  std::uint64_t accesses_ = 0;               ///< stores and port accesses by then
};

}  // namespace citcat
