#pragma once
// The search of replay/infer/event_placer.h: one interrupt after the other, with everything that it
// comes back to. Which boundaries fit what stands before the interrupt: place_search_window.cc.
// Which of them fit what follows: place_search_trials.cc, and behind a write-back cache
// place_search_lines.cc and place_search_frames.cc. Interrupts that the bus does not show
// themselves: place_search_hidden.cc.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/placement.h"
#include "events/recording.h"
#include "replay/infer/anchor_gate.h"
#include "replay/infer/event_placer.h"
#include "replay/infer/frame_watch.h"
#include "replay/infer/handler_saves.h"
#include "replay/infer/interleaving.h"
#include "replay/infer/interrupt_evidence.h"
#include "replay/infer/loop_detector.h"
#include "replay/infer/store_order.h"
#include "replay/session/count_tally.h"
#include "replay/session/replayer.h"
#include "replay/session/rewindable_evidence.h"
#include "replay/verify/cache_follower.h"
#include "replay/verify/verifier.h"

namespace citcat {

/// Boundaries that fit what stands before them, all with the processor in one state.
struct BoundaryGroup {
  CpuState state;
  std::uint64_t stores = 0;  ///< bytes of memory may differ where this does
  Position first;
  std::size_t boundaries = 0;  ///< behind a cache: passed in the window before `first`
  std::uint64_t count = 1;
  std::vector<Position> others;
  bool plainly_counted = false;  ///< has the count of the capture with nothing doubtful in it
};

/// What a register held at the interrupt, as the handler or the processor stored it.
struct KnownRegister {
  enum class Kind : std::uint8_t { general, segment, eip };
  Kind kind = Kind::general;
  std::uint8_t number = 0;
  std::uint32_t mask = 0, value = 0;
};

class PlaceSearch {
 public:
  PlaceSearch(const Recording& recording, const EvidenceSource& evidence,
              const PlacerOptions& options);
  PlacementReport run();

 private:
  /// Everything to come back to.
  struct Place {
    Replayer::Checkpoint replayer;
    Verifier::Checkpoint verifier;
    AnchorGate::Progress gate;
    std::uint64_t evidence = 0;  ///< transactions read
    CountTally::State counts;
    // Of a write-back cache.
    std::optional<CacheFollower::Checkpoint> cache;
    FrameWatch::State frames;
  };
  /// A choice that later traffic may refute.
  struct Choice {
    std::size_t event = 0;  ///< number in PlacementReport::events
    std::size_t interrupt = 0;
    Place window;
    std::vector<BoundaryGroup> rest;  ///< not tried to the end
    CacheLog passed;                  ///< behind a cache: by the window
    bool followed_far = false;
    BoundaryGroup taken;
    bool exhausted = false;  ///< none of `rest` explains what a line shows
  };
  struct Trial {
    bool survived = false;
    /// The first transaction that was not made; all ones where everything was that had to be.
    std::uint64_t reached = ~std::uint64_t{0};
    CpuState state;        ///< where it ended
    std::uint64_t io = 0;  ///< port accesses by then
    bool operator==(const Trial&) const = default;
  };
  enum class Mode : std::uint8_t { collect, trial, log, deliver, run_on };

  bool watch(Position now);
  bool watch_window(Position now);
  bool in_window() const;
  bool fits() const;
  bool is_counted() const { return tally_ && tally_->knows() && target().count; }
  bool reads_fit() const;
  void expect_reads();
  bool registers_fit() const;
  void learn_registers();
  void learn_saved_state();
  void know(KnownRegister r, PhysAddr stored, std::uint32_t size);
  void collect(std::size_t interrupt);
  void collect_from_here();
  void collect_again();
  void narrow();
  void begin_window();
  void begin_log();
  bool add_candidate();
  void decide_by_trial(PlacedEvent& event);
  std::vector<Trial> try_all(std::uint64_t writes);
  ReplayReport run_from(const BoundaryGroup& group, std::uint64_t writes);
  Trial try_group(const BoundaryGroup& group, std::uint64_t writes);
  bool next_is_hidden() const;
  bool frame_agreed(const BoundaryGroup& group) const;
  bool is_hidden(std::size_t interrupt) const;
  bool place_hidden(std::size_t interrupt);
  bool place_at_store(const StoreOrder::Access& access);
  std::uint64_t run_without();
  bool passed_marker() const;
  bool watch_hidden(Position now);
  void keep_place(Position now);
  const Place* place_before(const BusAnchor& anchor) const;
  void dismiss();
  std::uint32_t first_read_of_delivery();
  void accept(PlacedEvent event);
  void describe(PlacedEvent& event, const std::vector<BoundaryGroup>& groups) const;
  void follow_cache(const EvidenceSource& evidence, const CacheDescriptor& descriptor);
  std::size_t boundaries_passed();
  bool watch_handler(Position now);
  Interleaved log_handler(const BoundaryGroup& group, std::uint64_t instructions);
  bool have_one_stack() const;
  void keep_what_lines_fit(bool far);
  std::vector<BoundaryGroup> fitting_lines(const std::vector<BoundaryGroup>& groups,
                                           std::uint64_t instructions);
  void watch_frame(std::size_t event);
  void learn_frame(const FrameWatch::Found& found);
  bool shows_memory(const FrameWatch::Found& found) const;
  bool leaves(const BoundaryGroup& group, const FrameWatch::Found& found);
  bool correct();
  void take_back();
  Choice* choice_of(std::size_t event);
  const Choice* choice_of(std::size_t event) const {
    return const_cast<PlaceSearch*>(this)->choice_of(event);
  }
  bool can_tell(const FrameWatch::Found& found) const;
  void narrowed(std::size_t number);
  void qualify();
  void believe(const FrameWatch::Found& found);
  void believe_rest(PhysAddr line, std::span<const std::uint8_t> bytes);
  bool place_next(std::size_t interrupt);
  bool finish();
  bool revise();
  void fail(std::size_t interrupt);
  PlacementReport give_up();
  PlacementReport report();
  void note_gain();
  ReplayReport go();
  std::uint64_t expected_length() const;
  bool may_spend(std::uint64_t instructions, const Place& place) const;
  Place here(bool hold = true);
  void go_back(const Place& place);
  void set_position(std::size_t interrupt, std::optional<Position> position);
  std::optional<std::size_t> next_unplaced() const;
  const Interrupt& target() const { return schedule_.interrupts[target_]; }

  const Recording& recording_;
  Schedule schedule_;  ///< with the places taken so far
  const PlacerOptions& options_;
  std::vector<InterruptEvidence> surroundings_;
  std::vector<bool> counted_;  ///< interrupts whose position came with the recording
  RewindableEvidence* evidence_ = nullptr;
  AnchorGate gate_{PortCount(recording_)};
  std::optional<CountTally> tally_;  ///< where the capture counts something else than instructions
  HandlerSaves saves_;
  // Of a write-back cache: the lines on the bus are compared, and what they tell when they leave
  // it.
  std::unique_ptr<CacheFollower> cache_;
  FrameWatch frames_;
  FrameWatch::Found wrong_;  ///< what wrong_event_ was found out by
  std::unordered_map<std::size_t, std::vector<BoundaryGroup>>
      open_;                                                ///< by event: what fits so far
  CacheLog passed_;                                         ///< by the window being collected
  std::size_t passed_counted_ = 0, passed_boundaries_ = 0;  ///< of passed_
  const BoundaryGroup* logged_ = nullptr;                   ///< Mode::log: where the interrupt is
  bool followed_far_ = false, exhausted_ = false;
  std::vector<std::size_t> uncertain_;  ///< events since the bus last showed what they left
  Interleaved log_;
  std::optional<std::uint64_t> log_until_;  ///< age of the frame, or all ones: its return
  std::size_t log_begins_ = 0;              ///< in log_.after, which begins with the window
  std::optional<std::size_t> wrong_event_;  ///< its frame names another place, before the return
  std::unique_ptr<Verifier> verifier_;
  SinkList sinks_;
  std::unique_ptr<Replayer> replayer_;
  PlacementReport report_;
  std::vector<Choice> choices_;
  unsigned revisions_ = 0;
  std::size_t most_placed_ = 0;      ///< events that had a place at once
  std::uint64_t gained_at_ = 0;      ///< instruction, the last time the search got further
  std::uint64_t furthest_ = 0;       ///< instruction that was come to
  std::uint64_t furthest_read_ = 0;  ///< transactions read by then

  Mode mode_ = Mode::collect;
  std::size_t target_ = 0;              ///< interrupt looked for
  std::uint64_t stop_writes_ = 0;       ///< Mode::trial: bytes written at the horizon
  std::uint64_t stop_instruction_ = 0;  ///< Mode::trial
  std::optional<Position> stopped_at_;  ///< boundary looked at last
  bool window_over_ = false, endless_ = false, too_many_ = false;
  bool check_reads_ = false;
  bool learned_ = false;  ///< registers_ were looked for
  std::vector<KnownRegister> registers_;
  LoopDetector loop_;
  std::vector<std::uint32_t> expected_reads_;  ///< sorted
  std::optional<Place> window_;                ///< at the first boundary that fits
  std::vector<BoundaryGroup> groups_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> group_index_;  ///< while collecting
  std::optional<Divergence> left_;  ///< where the run to the window left the evidence

  // Of interrupts that the bus does not show.
  std::unique_ptr<StoreOrder> order_;
  std::vector<BusAnchor> markers_;  ///< of all interrupts, as imported
  std::vector<Place> places_;       ///< Mode::run_on: the beginning and the latest on the way
  std::uint64_t next_place_ = 0;    ///< instruction
  std::uint64_t quiet_since_ = 0;   ///< instruction without stores and port accesses since
  std::uint64_t accesses_ = 0;      ///< stores and port accesses by then
};

}  // namespace citcat
