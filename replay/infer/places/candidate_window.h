#pragma once
// Finds the boundaries that fit the traffic before an interrupt: runs through the window between
// the transactions before and after the interrupt, and keeps the boundaries that pass every filter.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "replay/infer/places/boundary_filters.h"
#include "replay/infer/places/candidates.h"
#include "replay/infer/places/loop_detector.h"
#include "replay/infer/places/placement_run.h"

namespace citcat {

class CandidateWindow {
 public:
  /// Both must outlive the window. `surroundings` may change between two calls.
  CandidateWindow(PlacementRun& run, const InterruptSurroundings& surroundings)
      : run_(run),
        frame_(run, surroundings),
        registers_(run, surroundings),
        reads_(run, surroundings) {}

  /// Runs through the window of an interrupt, as often as its filters learn more.
  Candidates collect(std::size_t interrupt);

 private:
  void run_through();
  void run_again();
  void begin();
  void begin_log();
  void narrow();
  bool watch(Position now);
  bool fits() const { return frame_.fits(found_.interrupt); }
  bool has_ended(const ReplayReport& report) const;
  bool add_boundary();
  std::size_t boundaries_passed();

  PlacementRun& run_;
  FrameFilter frame_;
  RegisterFilter registers_;
  ReadFilter reads_;
  LoopDetector loop_;
  Candidates found_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> index_;  ///< in found_.groups
  std::size_t passed_counted_ = 0, passed_boundaries_ = 0;             ///< of found_.passed
  std::optional<Position> stopped_at_;                                 ///< boundary looked at last
  bool over_ = false;                                                  ///< after the window
};

}  // namespace citcat
