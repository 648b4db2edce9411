#pragma once
// The replay that a search for the places of interrupts drives, with everything that has to be
// taken back together with it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "events/recording.h"
#include "replay/infer/places/anchor_gate.h"
#include "replay/infer/places/event_placer.h"
#include "replay/infer/places/frame_watch.h"
#include "replay/infer/places/handler_saves.h"
#include "replay/infer/places/search_effort.h"
#include "replay/session/count_tally.h"
#include "replay/verify/cache_follower.h"
#include "replay/verify/rewindable_replay.h"

namespace citcat {

class PlacementRun {
 public:
  /// All must outlive the run. There is no model of every write-back cache: see has_cache().
  PlacementRun(const Recording& recording, const EvidenceSource& evidence,
               const PlacerOptions& options);
  PlacementRun(const PlacementRun&) = delete;
  PlacementRun& operator=(const PlacementRun&) = delete;

  /// Everything to come back to.
  struct Place {
    RewindableReplay::Place replay;
    AnchorGate::Progress gate;
    CountTally::State counts;
    // The state of a write-back cache.
    std::shared_ptr<const CacheFollower::Checkpoint> cache;
    FrameWatch::State frames;
    Position position() const { return replay.position(); }
  };
  /// `hold`: going back to it is going to be cheap, until release().
  Place here(bool hold = true);
  void go_back(const Place& place);
  void release();

  /// Asked at every boundary, before the instruction there: true ends the run there.
  using Watch = std::function<bool(Position)>;
  /// Goes on from where the replay is. Once interrupted() it does not run any more.
  ReplayReport go(const Watch& watch);
  /// Lets the interrupt happen at a boundary after `window`, and what follows, until `writes`
  /// bytes were written, the next interrupt that the bus shows is there, or it takes too long.
  ReplayReport run_with(std::size_t interrupt, Position at, const Place& window,
                        std::uint64_t writes);
  /// Everything has its place: to the end of the evidence.
  ReplayReport run_to_end();
  /// The place of an interrupt; nullopt: none yet.
  void set_position(std::size_t interrupt, std::optional<Position> position);
  /// The next interrupt on the way that has none.
  std::optional<std::size_t> next_unplaced() const;
  /// The anchor of the interrupt after this one, if that has no place yet; else null.
  const BusAnchor* limit_behind(std::size_t interrupt) const;

  /// Nothing on the bus says where it is: of a device on the processor's chip, or NMI.
  bool is_hidden(std::size_t interrupt) const;
  /// Nothing says how far a run may go before the interrupt after this one is missing.
  bool next_is_hidden(std::size_t interrupt) const;

  /// Whether the replay is between the transactions that the interrupt is between.
  bool in_window(std::size_t interrupt);
  /// The run was ended by what the bus shows after the limit of its window.
  bool closed() const { return gate_.closed() || (cache_ && cache_->closed()); }
  /// Where the window of the interrupt ends, or nowhere.
  void set_limits(std::optional<std::size_t> interrupt);
  /// The count of the capture can be compared with that of the replay.
  bool is_counted(std::size_t interrupt) const {
    return tally_ && tally_->knows() && this->interrupt(interrupt).count;
  }

  /// From now on what the run does may be wrong: nothing is compared and nothing learned.
  void suppose(bool supposes);
  bool supposes() const { return supposes_; }
  /// Ends the run at the next boundary, or where it is: what was found out changes what is to be
  /// run. Until resume().
  void stop() { stopped_ = true; }
  void resume() { stopped_ = false; }
  /// Stopped, or the time is spent.
  bool interrupted() const { return stopped_ || effort_.spent(); }

  /// Whether the search may execute so many instructions more before it goes on from `place`;
  /// without a cache, where runs are short, always.
  bool may_spend(std::uint64_t instructions, const Place& place) const {
    return !has_cache() || effort_.allows(instructions, place.position().instruction);
  }
  SearchEffort& effort() { return effort_; }
  const SearchEffort& effort() const { return effort_; }

  const Recording& recording() const { return recording_; }
  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }
  const Interrupt& interrupt(std::size_t n) const { return schedule_.interrupts[n]; }
  RewindableReplay& replay() { return *replay_; }
  Machine& machine() { return replay_->machine(); }
  const Machine& machine() const { return replay_->machine(); }
  Position position() const { return replay_->machine().position(); }
  std::size_t next_interrupt() const { return replay_->replayer().next_interrupt(); }
  Verifier& verifier() { return replay_->verifier(); }
  const Verifier& verifier() const { return replay_->verifier(); }
  AnchorGate& gate() { return gate_; }
  const AnchorGate& gate() const { return gate_; }
  const CountTally& counts() const { return *tally_; }
  HandlerSaves& saves() { return saves_; }
  /// Behind a write-back cache: the lines on the bus are compared, and what they say when they
  /// leave it.
  bool has_cache() const { return cache_ != nullptr; }
  CacheFollower& cache() { return *cache_; }
  FrameWatch& frames() { return frames_; }
  const FrameWatch& frames() const { return frames_; }

 private:
  bool watch(Position now);
  bool look_at_clock(Position now);

  const Recording& recording_;
  Schedule schedule_;  ///< with the places taken so far
  const PlacerOptions& options_;
  AnchorGate gate_;
  std::optional<CountTally> tally_;  ///< where the capture counts something else than instructions
  HandlerSaves saves_;
  std::unique_ptr<CacheFollower> cache_;
  FrameWatch frames_;
  std::unique_ptr<RewindableReplay> replay_;
  const Watch* watch_ = nullptr;  ///< of the run in progress
  SearchEffort effort_;
  bool supposes_ = false, stopped_ = false;
};

}  // namespace citcat
