#include "replay/event_placer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "replay/cache_follower.h"
#include "replay/frame_watch.h"
#include "replay/handler_saves.h"
#include "replay/interleaving.h"
#include "replay/interrupt_evidence.h"
#include "replay/rewindable_evidence.h"
#include "replay/verifier.h"

namespace citcat {

std::uint64_t PlacementReport::count(Placement placement) const {
  return static_cast<std::uint64_t>(
      std::count_if(events.begin(), events.end(),
                    [&](const PlacedEvent& e) { return e.placement == placement; }));
}

bool needs_placement(const Recording& recording) {
  return std::any_of(recording.interrupts.begin(), recording.interrupts.end(),
                     [](const Interrupt& i) { return !i.position_known; });
}

namespace {

constexpr std::uint32_t kFlagIf = 0x200;
/// Number of the frame of a run that only looks what the handler does.
constexpr std::size_t kLoggedFrame = ~std::size_t{0};

/// Counts what anchors are made of, and ends a run at the first access that the bus shows behind a
/// given anchor only.
class AnchorGate final : public Sink {
 public:
  struct Progress {
    std::uint64_t writes = 0, io = 0;  ///< as in BusAnchor
    std::uint64_t stores = 0;          ///< on the bus or not
    /// Addresses of the bytes of data read since the last of these or interrupt, page walks left
    /// out.
    std::vector<std::uint32_t> reads;
  };

  void attach(Machine& machine) { machine_ = &machine; }
  void follow_reads() { follows_reads_ = true; }
  /// Of stores only those that pass the cache are on the bus.
  void behind(const CacheFollower& cache) { cache_ = &cache; }
  void set_limit(const BusAnchor* limit) { limit_ = limit; }
  bool closed() const { return closed_; }
  void reopen() { closed_ = false; }
  const Progress& progress() const { return progress_; }
  void restore(const Progress& progress) { progress_ = progress; }
  bool at(const BusAnchor& anchor) const {
    return progress_.writes == anchor.writes && progress_.io == anchor.io;
  }
  bool is_table(std::uint32_t address) const { return tables_.count(address / kPageSize) != 0; }

  bool wants_reads() const override { return follows_reads_; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) override {
    if (kind == AccessKind::walk) {
      tables_.insert(captured(a) / kPageSize);
      return;
    }
    if (progress_.reads.size() >= InterruptEvidence::kReadBytes) return;
    for (std::uint32_t i = 0; i < size; ++i) progress_.reads.push_back(captured(a + i));
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    progress_.reads.clear();
    ++progress_.stores;
    if (cache_ != nullptr && !cache_->writes_through(PhysAddr{captured(a)})) return;
    progress_.writes += bytes.size();
    check();
  }
  void io_read(std::uint16_t, std::uint32_t, std::uint32_t, Position) override { port(); }
  void io_write(std::uint16_t, std::uint32_t, std::uint32_t, Position) override { port(); }
  void delivered(const DeliveredEvent& event, Position) override {
    if (event.kind != DeliveredEvent::Kind::exception &&
        event.kind != DeliveredEvent::Kind::software) {
      progress_.reads.clear();
      if (on_delivery_) on_delivery_();
    }
  }
  /// Called when an interrupt is about to be delivered.
  void on_delivery(std::function<void()> call) { on_delivery_ = std::move(call); }

 private:
  std::uint32_t captured(PhysAddr a) const { return machine_->memory().captured(a).value; }
  void port() {
    progress_.reads.clear();
    ++progress_.io;
    check();
  }
  void check() {
    if (limit_ == nullptr) return;
    if (progress_.writes <= limit_->writes && progress_.io <= limit_->io) return;
    closed_ = true;
    throw EvidenceEnd{};
  }

  Machine* machine_ = nullptr;
  const CacheFollower* cache_ = nullptr;
  std::function<void()> on_delivery_;
  const BusAnchor* limit_ = nullptr;
  bool follows_reads_ = false, closed_ = false;
  Progress progress_;
  std::unordered_set<std::uint32_t> tables_;  ///< frames of page tables
};

/// Finds out that a run without stores is in an endless loop: its state comes again (Brent's
/// algorithm).
class LoopDetector {
 public:
  void begin() {
    seen_.reset();
    steps_ = 0;
    next_ = 1;
    met_ = false;
  }
  /// Asked at every boundary; true when a whole round of the loop went by since a state was met
  /// again, with the same number of reads and no store since.
  bool went_round(const Machine& machine, std::size_t reads, std::uint64_t stores) {
    if (std::exchange(stores_, stores) != stores) begin();
    ++steps_;
    if (seen_ && reads == reads_ && same(machine)) {
      if (met_) return true;
      met_ = true;
    }
    if (met_ || steps_ < next_) return false;
    next_ *= 2;
    seen_ = machine.save();
    reads_ = reads;
    return false;
  }

 private:
  bool same(const Machine& machine) const {
    const Engine& engine = machine.engine();
    if (engine.eip() != seen_->eip) return false;
    for (int i = 0; i < 8; ++i) {
      if (engine.gpr(i) != seen_->gpr[static_cast<std::size_t>(i)]) return false;
    }
    return machine.save() == *seen_;
  }
  std::optional<CpuState> seen_;
  std::size_t reads_ = 0;
  std::uint64_t steps_ = 0, next_ = 1, stores_ = 0;
  bool met_ = false;
};

/// Boundaries that fit what stands before them, all with the processor in one state.
struct Group {
  CpuState state;
  std::uint64_t stores = 0;  ///< bytes of memory may differ where this does
  Position first;
  std::size_t boundaries = 0;  ///< behind a cache: passed in the window before `first`
  std::uint64_t count = 1;
  std::vector<Position> others;
};

/// The return address that a line shows, or as much of it, is that of the boundary.
bool returns_there(const Group& g, const FrameWatch::Found& found) {
  return (g.state.eip & found.eip_mask) == found.eip;
}

/// Which stack the frame goes to, and where: from user code always to the same place.
std::pair<unsigned, std::uint32_t> stack_of(const Group& g) {
  const unsigned level = g.state.segment[kCs].selector & 3;
  const bool is_protected = (g.state.cr0 & 1) != 0;
  return {level, is_protected && level != 0 ? 0 : static_cast<std::uint32_t>(g.state.gpr[kEsp])};
}

/// Where the stretch of a log begins that comes after so many boundaries.
std::size_t stretch(const CacheLog& log, std::size_t boundaries) {
  std::size_t i = 0;
  for (; boundaries != 0 && i < log.size(); ++i) {
    if (log[i].kind == CacheOp::Kind::boundary) --boundaries;
  }
  return i;
}

/// What a register held at the interrupt, as the handler stored it.
struct KnownRegister {
  bool is_segment = false;
  std::uint8_t number = 0;
  std::uint32_t mask = 0, value = 0;
};

class EventPlacer {
 public:
  EventPlacer(Recording& recording,
              const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
              const PlacerOptions& options);
  PlacementReport run();

 private:
  /// Everything to come back to.
  struct Place {
    Replayer::Checkpoint replayer;
    Verifier::Checkpoint verifier;
    AnchorGate::Progress gate;
    std::uint64_t evidence = 0;  ///< transactions read
    // Of a write-back cache.
    std::optional<CacheFollower::Checkpoint> cache;
    FrameWatch::State frames;
  };
  /// A choice that later traffic may refute.
  struct Choice {
    std::size_t event = 0;  ///< number in PlacementReport::events
    std::size_t interrupt = 0;
    Place window;
    std::vector<Group> rest;  ///< not tried to the end
    CacheLog passed;          ///< behind a cache: by the window
    bool followed_far = false;
    Group taken;
    bool exhausted = false;  ///< none of `rest` explains what a line shows
  };
  struct Trial {
    bool survived = false;
    CpuState state;        ///< where it ended
    std::uint64_t io = 0;  ///< port accesses by then
    bool operator==(const Trial&) const = default;
  };
  enum class Mode : std::uint8_t { collect, trial, log };

  bool watch(Position now);
  bool watch_window(Position now);
  bool in_window() const;
  bool fits() const;
  bool reads_fit() const;
  void expect_reads();
  bool registers_fit() const;
  void learn_registers();
  void collect(std::size_t interrupt);
  void collect_from_here();
  void collect_again();
  void begin_window();
  bool add_candidate();
  void decide_by_trial(PlacedEvent& event);
  std::vector<Trial> try_all(std::uint64_t writes);
  ReplayReport run_from(const Group& group, std::uint64_t writes);
  Trial try_group(const Group& group, std::uint64_t writes);
  void accept(PlacedEvent event);
  void describe(PlacedEvent& event, const std::vector<Group>& groups) const;
  void follow_cache(const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
                    const CacheDescriptor& descriptor);
  std::size_t boundaries_passed();
  bool watch_handler(Position now);
  Interleaved log_handler(const Group& group, std::uint64_t instructions);
  void keep_what_lines_fit(bool far);
  std::vector<Group> fitting_lines(const std::vector<Group>& groups, std::uint64_t instructions);
  void watch_frame(std::size_t event);
  void learn_frame(const FrameWatch::Found& found);
  bool shows_memory(const FrameWatch::Found& found) const;
  bool leaves(const Group& group, const FrameWatch::Found& found);
  bool correct();
  void take_back();
  Choice* choice_of(std::size_t event);
  const Choice* choice_of(std::size_t event) const {
    return const_cast<EventPlacer*>(this)->choice_of(event);
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
  ReplayReport go();
  Place here();
  void go_back(const Place& place);
  void set_position(std::size_t interrupt, std::optional<Position> position);
  std::optional<std::size_t> next_unplaced() const;
  const Interrupt& target() const { return recording_.interrupts[target_]; }

  Recording& recording_;
  const PlacerOptions& options_;
  std::vector<InterruptEvidence> surroundings_;
  std::vector<bool> counted_;  ///< interrupts whose position came with the recording
  RewindableEvidence* evidence_ = nullptr;
  AnchorGate gate_;
  HandlerSaves saves_;
  // Of a write-back cache: the lines on the bus are compared, and what they tell when they leave
  // it.
  std::unique_ptr<CacheFollower> cache_;
  FrameWatch frames_;
  FrameWatch::Found wrong_;  ///< what wrong_event_ was found out by
  std::unordered_map<std::size_t, std::vector<Group>> open_;  ///< by event: what fits so far
  CacheLog passed_;                                           ///< by the window being collected
  std::size_t passed_counted_ = 0, passed_boundaries_ = 0;    ///< of passed_
  const Group* logged_ = nullptr;                             ///< Mode::log: where the interrupt is
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
  std::uint64_t furthest_ = 0;  ///< instruction that was come to

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
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> group_index_;  ///< while collecting
  std::optional<Divergence> left_;  ///< where the run to the window left the evidence
};

EventPlacer::EventPlacer(Recording& recording,
                         const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
                         const PlacerOptions& options)
    : recording_(recording),
      options_(options),
      surroundings_(scan_interrupts(recording, *evidence())) {
  for (const Interrupt& i : recording.interrupts) counted_.push_back(i.position_known);
  auto reader = std::make_unique<RewindableEvidence>(evidence);
  evidence_ = reader.get();
  VerifierOptions verifying;
  verifying.strict = options.strict;
  verifying.reads = false;
  verifying.final_memory = false;
  // Whether a change of one bit is a device is for others to judge.
  verifying.bit_changes = true;
  verifier_ = std::make_unique<Verifier>(recording, std::move(reader), verifying);
  if (recording.bus.form == CacheForm::none) gate_.follow_reads();
  if (recording.bus.form == CacheForm::write_back) {
    if (const CacheDescriptor* cache = declared_cache(recording.bus))
      follow_cache(evidence, *cache);
  }
  sinks_.add(gate_);
  sinks_.add(saves_);
  if (cache_) {
    sinks_.add(frames_);
    sinks_.add(*cache_);
  }
  sinks_.add(*verifier_);
  ReplayOptions replay;
  replay.evidence = evidence;
  if (options.progress) {
    replay.progress = [&options](Position now) {
      options.progress(now);
      return true;
    };
  }
  replay.watch = [this](Position now) { return watch(now); };
  replayer_ = std::make_unique<Replayer>(recording, &sinks_, std::move(replay));
  gate_.attach(replayer_->machine());
  saves_.attach(replayer_->machine());
  verifier_->attach(replayer_->machine());
  if (cache_) {
    frames_.attach(replayer_->machine());
    cache_->attach(replayer_->machine());
  }
}

void EventPlacer::follow_cache(const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
                               const CacheDescriptor& descriptor) {
  cache_ = std::make_unique<CacheFollower>(recording_, evidence, descriptor);
  cache_->on_write_back([this](const CacheFollower::Line& line) {
    const auto bytes = std::span(line.data).first(cache_->descriptor().line_bytes);
    for (const FrameWatch::Found& found : frames_.written_back(line.traffic.line, bytes)) {
      learn_frame(found);
    }
    if (mode_ != Mode::log && !open_.empty()) believe_rest(line.traffic.line, bytes);
  });
  gate_.behind(*cache_);
  gate_.on_delivery([this] {
    if (mode_ == Mode::log && log_begins_ == 0) log_begins_ = log_.after.size();
  });
}

std::optional<std::size_t> EventPlacer::next_unplaced() const {
  for (std::size_t i = replayer_->next_interrupt(); i < recording_.interrupts.size(); ++i) {
    if (!recording_.interrupts[i].position_known) return i;
  }
  return std::nullopt;
}

/// Runs, and counts what that cost.
ReplayReport EventPlacer::go() {
  const std::uint64_t before = replayer_->machine().position().instruction;
  furthest_ = std::max(furthest_, before);
  const ReplayReport report = replayer_->run();
  report_.instructions += report.instructions - std::min(before, report.instructions);
  return report;
}

EventPlacer::Place EventPlacer::here() {
  evidence_->hold();
  Place place{replayer_->checkpoint(),
              verifier_->checkpoint(),
              gate_.progress(),
              evidence_->position(),
              std::nullopt,
              {}};
  if (cache_) {
    place.cache = cache_->checkpoint();
    place.frames = frames_.state();
  }
  return place;
}

void EventPlacer::go_back(const Place& place) {
  replayer_->restore(place.replayer);
  verifier_->restore(place.verifier);
  evidence_->seek(place.evidence);
  gate_.restore(place.gate);
  gate_.reopen();
  if (place.cache) {
    cache_->restore(*place.cache);
    frames_.restore(place.frames);
  }
}

void EventPlacer::set_position(std::size_t interrupt, std::optional<Position> position) {
  Interrupt& event = recording_.interrupts[interrupt];
  event.position_known = position.has_value();
  event.position = position.value_or(Position{});
}

// ---------------------------------------------------------------------------------------------
// Which boundaries fit what stands before the interrupt

bool EventPlacer::in_window() const {
  return replayer_->next_interrupt() == target_ && gate_.at(target().anchor) &&
         (!cache_ || cache_->at(target().transaction));
}

/// What must hold at the boundary the interrupt was taken at.
bool EventPlacer::fits() const {
  const Machine& machine = replayer_->machine();
  const Engine& engine = machine.engine();
  if (target().kind == Interrupt::Kind::external &&
      ((engine.system_flags() & kFlagIf) == 0 || engine.inhibited())) {
    return false;
  }
  if (cache_) return true;  // the frame stays in it
  const InterruptEvidence& after = surroundings_[target_];
  if (target().kind == Interrupt::Kind::smi || after.stored_bytes() == 0) return true;
  const std::uint32_t eip = engine.eip();
  if (after.stores(eip, eip > 0xffff ? 4 : 2)) return true;
  // An 8088 goes back to the last prefix of a string instruction only (8086 Family User's Manual,
  // 2.7), which may be one or two bytes further on.
  return machine.position().iteration != 0 && recording_.initial.model == CpuModel::i8088 &&
         (after.stores((eip + 1) & 0xffff, 2) || after.stores((eip + 2) & 0xffff, 2));
}

bool EventPlacer::registers_fit() const {
  const Engine& engine = replayer_->machine().engine();
  return std::all_of(registers_.begin(), registers_.end(), [&](const KnownRegister& r) {
    const std::uint32_t now = r.is_segment ? engine.segment(r.number).selector
                                           : static_cast<std::uint32_t>(engine.gpr(r.number));
    return (now & r.mask) == r.value;
  });
}

/// Lets the handler run from the first boundary that fits: whatever registers it saves on the way
/// that it takes from all of them tell which of them it was.
void EventPlacer::learn_registers() {
  learned_ = true;
  saves_.begin();
  sinks_.mute(verifier_.get());
  constexpr std::uint64_t kBytes = InterruptEvidence::kStoredBytes;
  run_from(groups_.front(), target().anchor.writes + kBytes);
  sinks_.mute(nullptr);
  saves_.end();
  std::unordered_set<std::uint32_t> seen;
  for (const SavedRegister& save : saves_.saves()) {
    KnownRegister r{save.is_segment, save.number, 0, 0};
    for (std::uint32_t i = 0; i < save.size; ++i) {
      const auto byte = surroundings_[target_].stored(save.address + i);
      if (!byte || !seen.insert(save.address.value + i).second) break;
      r.mask |= std::uint32_t{0xff} << (8 * i);
      r.value |= std::uint32_t{*byte} << (8 * i);
    }
    if (r.mask != 0) registers_.push_back(r);
  }
}

bool EventPlacer::reads_fit() const {
  if (!check_reads_) return true;
  std::vector<std::uint32_t> reads = gate_.progress().reads;
  if (reads.size() != expected_reads_.size()) return false;
  std::sort(reads.begin(), reads.end());
  return reads == expected_reads_;
}

/// Walks of page tables are left out: the processor's TLB need not be the replay's.
void EventPlacer::expect_reads() {
  const auto& reads = surroundings_[target_].reads();
  check_reads_ = reads.has_value();
  expected_reads_.clear();
  if (!check_reads_) return;
  std::copy_if(reads->begin(), reads->end(), std::back_inserter(expected_reads_),
               [&](std::uint32_t a) { return !gate_.is_table(a); });
  std::sort(expected_reads_.begin(), expected_reads_.end());
}

bool EventPlacer::watch(Position now) {
  if (cache_) {
    frames_.at_boundary();
    cache_->settle(now);
  }
  if (mode_ == Mode::log) return watch_handler(now);
  if (mode_ == Mode::collect) return in_window() && stopped_at_ != now && watch_window(now);
  return gate_.progress().writes >= stop_writes_ || now.instruction >= stop_instruction_;
}

bool EventPlacer::watch_window(Position now) {
  const std::size_t reads = gate_.progress().reads.size();
  endless_ = loop_.went_round(replayer_->machine(), reads, gate_.progress().stores);
  window_over_ = endless_ || (window_ && check_reads_ && reads > expected_reads_.size());
  if (!window_over_ && (!fits() || (window_ && (!registers_fit() || !reads_fit())))) return false;
  stopped_at_ = now;
  return true;
}

/// The boundary the replay stands at fits. False when there are too many to look at.
bool EventPlacer::add_candidate() {
  // Behind a cache a window is long, and what keeps its boundaries apart is looked at cheaply.
  const std::size_t most = cache_ ? 1 << 14 : 1 << 11;
  CpuState state = replayer_->machine().save();
  state.msrs.clear();
  state.cpuid.clear();
  const Position now = replayer_->machine().position();
  // In a window without a cache nothing is stored.
  const std::uint64_t stores = gate_.progress().stores;
  std::vector<std::size_t>& alike = group_index_[stores << 32 ^ state.eip ^ state.gpr[kEcx]];
  for (const std::size_t i : alike) {
    Group& group = groups_[i];
    if (group.stores != stores || !(group.state == state)) continue;
    ++group.count;
    if (group.others.size() < kListedPositions) group.others.push_back(now);
    return true;
  }
  too_many_ = groups_.size() == most;
  if (too_many_) return false;
  alike.push_back(groups_.size());
  groups_.push_back({std::move(state), stores, now, boundaries_passed(), 1, {}});
  return true;
}

void EventPlacer::collect_from_here() {
  for (;;) {
    const ReplayReport report = go();
    if (report.end == ReplayReport::End::diverged && !window_) left_ = report.divergence;
    const bool halted = replayer_->machine().halted() && in_window() && fits();
    if (gate_.closed() || (cache_ && cache_->closed()) || window_over_ ||
        report.end != ReplayReport::End::stopped)
      return;
    if (replayer_->machine().halted() ? !halted : stopped_at_ != replayer_->machine().position())
      return;
    if (!window_) {
      window_ = here();
      expect_reads();
      passed_.clear();
      passed_counted_ = passed_boundaries_ = 0;
      if (cache_) cache_->start_log(passed_, replayer_->machine().position());
    }
    if (reads_fit() && registers_fit() && !add_candidate()) return;
    if (halted || (groups_.size() > 1 && !learned_)) return;
  }
}

/// Goes through the window again from its first boundary that fits.
void EventPlacer::collect_again() {
  go_back(*window_);
  groups_.clear();
  group_index_.clear();
  begin_window();
  collect_from_here();
}

void EventPlacer::begin_window() {
  mode_ = Mode::collect;
  gate_.set_limit(&target().anchor);
  if (cache_) cache_->set_limit(target().transaction);
  stopped_at_.reset();
  window_over_ = endless_ = too_many_ = false;
  loop_.begin();
}

/// Runs through the window of an interrupt and collects the boundaries that fit.
void EventPlacer::collect(std::size_t interrupt) {
  target_ = interrupt;
  window_.reset();
  left_.reset();
  groups_.clear();
  group_index_.clear();
  registers_.clear();
  check_reads_ = false;
  learned_ = cache_ != nullptr;  // behind a cache only frames tell registers, and later
  begin_window();
  collect_from_here();
  if (cache_) cache_->stop_log();
  if (!window_ || cache_) return;
  if (groups_.size() > 1) {
    learn_registers();
    collect_again();
  }
  // What fits nowhere was taken for something it is not. The traffic decides alone.
  if (groups_.empty() && !registers_.empty()) {
    registers_.clear();
    collect_again();
  }
  if (groups_.empty() && check_reads_) {
    check_reads_ = false;
    collect_again();
  }
}

// ---------------------------------------------------------------------------------------------
// Which of them fits what follows

/// Lets the interrupt happen at a boundary, and what follows, until `writes` bytes were written.
ReplayReport EventPlacer::run_from(const Group& group, std::uint64_t writes) {
  constexpr std::uint64_t kMostInstructions = 1 << 20;
  go_back(*window_);
  set_position(target_, group.first);
  mode_ = Mode::trial;
  stop_writes_ = writes;
  stop_instruction_ = group.first.instruction + kMostInstructions;
  const bool next = target_ + 1 < recording_.interrupts.size() &&
                    !recording_.interrupts[target_ + 1].position_known;
  gate_.set_limit(next ? &recording_.interrupts[target_ + 1].anchor : nullptr);
  const ReplayReport report = go();
  set_position(target_, std::nullopt);
  return report;
}

EventPlacer::Trial EventPlacer::try_group(const Group& group, std::uint64_t writes) {
  ++report_.tried;
  Trial trial;
  trial.survived = run_from(group, writes).end != ReplayReport::End::diverged;
  if (trial.survived) {
    trial.state = replayer_->machine().save();
    trial.io = gate_.progress().io;
  }
  return trial;
}

/// Tries every group and drops those that the traffic refutes.
std::vector<EventPlacer::Trial> EventPlacer::try_all(std::uint64_t writes) {
  std::vector<Trial> survivors;
  std::vector<Group> groups;
  for (Group& group : groups_) {
    Trial trial = try_group(group, writes);
    if (!trial.survived) continue;
    survivors.push_back(std::move(trial));
    groups.push_back(std::move(group));
  }
  groups_ = std::move(groups);
  return survivors;
}

void EventPlacer::decide_by_trial(PlacedEvent& event) {
  // A handler that saves all registers writes 32 bytes and its frame; what a register that it does
  // not save does to the traffic may show much later.
  constexpr std::uint64_t kHorizons[] = {64, 1 << 10, 1 << 14, ~std::uint64_t{0} >> 1};
  constexpr std::size_t kMostTriedFar = 32;
  for (const std::uint64_t bytes : kHorizons) {
    if (bytes != kHorizons[0] && groups_.size() > kMostTriedFar) break;
    const std::vector<Trial> survivors = try_all(target().anchor.writes + bytes);
    if (groups_.size() <= 1) return;
    const bool same = std::all_of(survivors.begin(), survivors.end(),
                                  [&](const Trial& t) { return t == survivors.front(); });
    if (same) {
      event.placement = Placement::equivalent;
      return;
    }
  }
  event.placement = Placement::ambiguous;
}

/// Of the groups left, takes the first and goes on from there.
void EventPlacer::accept(PlacedEvent event) {
  describe(event, groups_);
  // What was not looked at may fit as well.
  if (too_many_) event.placement = Placement::ambiguous;
  event.more = event.candidates > 1 && (endless_ || too_many_);
  go_back(*window_);
  set_position(event.interrupt, event.position);
  const std::size_t number = report_.events.size();
  if (event.placement == Placement::ambiguous) {
    // For the case that something later refutes the choice; the latest are the likeliest.
    constexpr std::size_t kMostChoices = 8;
    if (choices_.size() == kMostChoices) choices_.erase(choices_.begin());
    choices_.push_back({number,
                        event.interrupt,
                        *window_,
                        {groups_.begin() + 1, groups_.end()},
                        passed_,
                        followed_far_,
                        groups_.front(),
                        std::exchange(exhausted_, false)});
  } else {
    evidence_->release();
    if (cache_) cache_->release();
  }
  if (cache_ && groups_.size() > 1) watch_frame(number);
  report_.events.push_back(std::move(event));
}

/// Of several groups, takes the first.
void EventPlacer::describe(PlacedEvent& event, const std::vector<Group>& groups) const {
  const Group& chosen = groups.front();
  if (groups.size() == 1 && event.placement == Placement::unique && chosen.count > 1) {
    event.placement = Placement::equivalent;
  }
  event.position = chosen.first;
  event.others = chosen.others;
  event.candidates = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    event.candidates += groups[i].count;
    if (i != 0 && event.others.size() < kListedPositions) event.others.push_back(groups[i].first);
  }
}

// ---------------------------------------------------------------------------------------------
// Write-back caches: which places fit the lines that the handler and what follows it move

/// Boundaries of the window since its first that fits.
std::size_t EventPlacer::boundaries_passed() {
  for (; passed_counted_ < passed_.size(); ++passed_counted_) {
    if (passed_[passed_counted_].kind == CacheOp::Kind::boundary) ++passed_boundaries_;
  }
  return passed_boundaries_;
}

/// Notes when the handler has come back to where it interrupted; true when enough is known.
bool EventPlacer::watch_handler(Position now) {
  if (now <= logged_->first && replayer_->next_interrupt() == target_) return false;
  const Engine& engine = replayer_->machine().engine();
  const CpuState& state = logged_->state;
  if (log_.returned == 0 && now > logged_->first && engine.eip() == state.eip &&
      engine.gpr(kEsp) == state.gpr[kEsp] &&
      engine.segment_selector(kCs) == state.segment[kCs].selector) {
    log_.returned = log_.after.size();
  }
  if (log_until_) {
    const FrameWatch::Frame& frame = frames_.state().frames.back();
    if (frame.returned || frame.age >= *log_until_) return true;
  }
  return now.instruction >= stop_instruction_;
}

/// What the cache hears with the interrupt at `group`, whatever lines that moves.
Interleaved EventPlacer::log_handler(const Group& group, std::uint64_t instructions) {
  ++report_.tried;
  go_back(*window_);
  set_position(target_, group.first);
  mode_ = Mode::log;
  logged_ = &group;
  frames_.begin(kLoggedFrame);
  log_ = {};
  log_begins_ = 0;
  stop_instruction_ = group.first.instruction + instructions;
  const bool next = target_ + 1 < recording_.interrupts.size() &&
                    !recording_.interrupts[target_ + 1].position_known;
  gate_.set_limit(next ? &recording_.interrupts[target_ + 1].anchor : nullptr);
  sinks_.mute(verifier_.get());
  cache_->ignore_bus(true);
  cache_->start_log(log_.after, window_->replayer.machine.position);
  go();
  cache_->stop_log();
  cache_->ignore_bus(false);
  sinks_.mute(nullptr);
  set_position(target_, std::nullopt);
  if (log_.returned == 0) log_.returned = log_.after.size();
  // Up to the interrupt the log is that of the window.
  const auto skipped = static_cast<std::ptrdiff_t>(log_begins_);
  log_.after.erase(log_.after.begin(), log_.after.begin() + skipped);
  log_.returned -= static_cast<std::size_t>(skipped);
  log_.before.assign(
      passed_.begin() + static_cast<std::ptrdiff_t>(stretch(passed_, group.boundaries)),
      passed_.end());
  return std::move(log_);
}

/// Those of `groups` that fit, which have one stack: their handlers make the same accesses.
std::vector<Group> EventPlacer::fitting_lines(const std::vector<Group>& groups,
                                              std::uint64_t instructions) {
  constexpr std::size_t kMostLines = 1 << 14;
  const Group& first = groups.front();
  const Interleaved run = log_handler(first, instructions);
  go_back(*window_);
  const std::uint64_t end = target_ + 1 < recording_.interrupts.size()
                                ? recording_.interrupts[target_ + 1].transaction
                                : ~std::uint64_t{0};
  const std::vector<CacheFollower::Line> lines = cache_->next_lines(kMostLines, end);
  CacheModel model = cache_->model();
  const std::size_t skipped = stretch(passed_, first.boundaries);
  for (std::size_t i = 0; i < skipped; ++i) apply(passed_[i], model);
  model.traffic().clear();
  std::vector<InterruptPlace> places;
  for (const Group& g : groups) {
    places.push_back({g.boundaries - first.boundaries, g.first.iteration != 0});
  }
  const std::vector<bool> fit = places_that_fit(model, run, lines, places);
  std::vector<Group> left;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (fit[i]) left.push_back(groups[i]);
  }
  return left;
}

void EventPlacer::keep_what_lines_fit(bool far) {
  constexpr std::size_t kMostStacks = 256;
  constexpr std::uint64_t kNear = 1 << 12, kFar = 1 << 14;
  std::vector<Group> left, groups = groups_;
  for (std::size_t stacks = 0; !groups.empty(); ++stacks) {
    const auto others = std::stable_partition(
        groups.begin(), groups.end(),
        [first = stack_of(groups.front())](const Group& g) { return stack_of(g) == first; });
    std::vector<Group> here(groups.begin(), others);
    groups.erase(groups.begin(), others);
    if (stacks < kMostStacks) here = fitting_lines(here, far ? kFar : kNear);
    left.insert(left.end(), here.begin(), here.end());
  }
  // Where nothing fits, something else is wrong; the run from here on will say what.
  if (left.empty()) return;
  std::sort(left.begin(), left.end(),
            [](const Group& a, const Group& b) { return a.first < b.first; });
  groups_ = std::move(left);
}

// ---------------------------------------------------------------------------------------------
// Write-back caches: what the interrupt stored shows itself when its lines leave the cache

void EventPlacer::watch_frame(std::size_t event) {
  // Of frames that were overwritten nothing can be learned any more.
  const std::vector<FrameWatch::Frame>& watched = frames_.state().frames;
  std::erase_if(open_, [&](const auto& item) {
    return std::none_of(watched.begin(), watched.end(),
                        [&](const FrameWatch::Frame& f) { return f.id == item.first; });
  });
  open_[event] = groups_;
  uncertain_.push_back(event);
  frames_.begin(event);
}

EventPlacer::Choice* EventPlacer::choice_of(std::size_t event) {
  const auto choice = std::find_if(choices_.begin(), choices_.end(),
                                   [event](const Choice& c) { return c.event == event; });
  return choice != choices_.end() ? &*choice : nullptr;
}

/// A line that leaves the cache shows part of what an interrupt and its handler stored.
void EventPlacer::learn_frame(const FrameWatch::Found& found) {
  const auto open = open_.find(found.id);
  if (open == open_.end() || mode_ == Mode::log) return;
  std::vector<Group>& groups = open->second;
  const bool right = shows_memory(found);
  if (!right && can_tell(found)) {
    wrong_event_ = found.id;
    wrong_ = found;
    throw EvidenceEnd{};
  }
  const Position taken = groups.front().first;
  std::vector<Group> left = groups;
  std::erase_if(left, [&](const Group& g) { return !returns_there(g, found); });
  if (left.size() != groups.size() && !left.empty() && left.front().first == taken) {
    groups = std::move(left);
    narrowed(found.id);
  }
  if (!right) believe(found);
}

/// Whether it is worth trying which of the places left gives what the line shows. Linux mixes the
/// return addresses of all interrupts into one number; of several that are not certain none can be
/// told by it.
bool EventPlacer::can_tell(const FrameWatch::Found& found) const {
  constexpr std::size_t kMostTried = 64;
  const Choice* const choice = choice_of(found.id);
  if (choice == nullptr || choice->exhausted) return false;
  if (std::any_of(uncertain_.begin(), uncertain_.end(),
                  [&](std::size_t event) { return event != found.id; })) {
    return false;
  }
  const auto fitting = std::count_if(choice->rest.begin(), choice->rest.end(),
                                     [&](const Group& g) { return returns_there(g, found); });
  return static_cast<std::size_t>(fitting) <= kMostTried;
}

/// What fits event `number` is fewer than it was.
void EventPlacer::narrowed(std::size_t number) {
  const std::vector<Group>& groups = open_.at(number);
  PlacedEvent& event = report_.events[number];
  if (groups.size() == 1 && !event.more) event.placement = Placement::unique;
  describe(event, groups);
  Choice* const choice = choice_of(number);
  if (choice == nullptr) return;
  choice->rest.assign(groups.begin() + 1, groups.end());
  if (choice->rest.empty()) choices_.erase(choices_.begin() + (choice - choices_.data()));
}

/// The place that was taken is not the right one, and which is, cannot be told: the run goes on
/// with what the bus shows.
void EventPlacer::believe(const FrameWatch::Found& found) {
  uncertain_.clear();
  for (const FrameWatch::Byte& b : found.bytes) {
    // What the handler is going to take back must be its own.
    if (found.returned) replayer_->machine().memory().external_write(b.address, {&b.value, 1});
  }
  for (const FrameWatch::Byte& b : found.bytes) {
    if (found.returned) {
      verifier_->memory_changed(b.address);
    } else {
      verifier_->forgive_line(b.address);
    }
  }
}

/// The line holds what memory holds.
bool EventPlacer::shows_memory(const FrameWatch::Found& found) const {
  return std::all_of(found.bytes.begin(), found.bytes.end(), [&](const FrameWatch::Byte& b) {
    return replayer_->machine().memory().defined_byte(b.address) == b.value;
  });
}

/// The handler of an interrupt at `group` leaves the bytes that were found.
bool EventPlacer::leaves(const Group& group, const FrameWatch::Found& found) {
  log_until_ = found.returned ? ~std::uint64_t{0} : found.age;
  (void)log_handler(group, 1 << 14);
  log_until_.reset();
  return shows_memory(found);
}

/// What the handlers of interrupts at uncertain places left is copied and computed with. Lines that
/// differ for it are taken as the bus shows them: where interrupts are is for the lines' order to
/// say.
void EventPlacer::believe_rest(PhysAddr line, std::span<const std::uint8_t> bytes) {
  Memory& memory = replayer_->machine().memory();
  const bool in_handler = std::any_of(frames_.state().frames.begin(), frames_.state().frames.end(),
                                      [](const FrameWatch::Frame& f) { return !f.returned; });
  for (std::uint32_t i = 0; i < bytes.size(); i += 16) {
    const auto part = bytes.subspan(i, std::min<std::size_t>(16, bytes.size() - i));
    bool differs = false;
    for (std::uint32_t k = 0; k < part.size(); ++k) {
      const auto ours = memory.defined_byte(line + i + k);
      differs |= ours && *ours != part[k];
    }
    if (!differs) continue;
    if (in_handler) {
      verifier_->forgive_line(line + i);
    } else {
      memory.external_write(line + i, part);
      verifier_->memory_changed(line + i);
    }
  }
}

/// Goes back to before the interrupt that a line has shown to be elsewhere, and takes the first
/// place whose handler leaves what it shows. Where there is none, something before is not as it
/// was, and the line is believed.
bool EventPlacer::correct() {
  const std::size_t number = *std::exchange(wrong_event_, std::nullopt);
  const FrameWatch::Found found = std::exchange(wrong_, {});
  Choice* const choice = choice_of(number);
  choices_.erase(choices_.begin() + (choice - choices_.data()) + 1, choices_.end());
  Choice& last = choices_.back();
  std::vector<Group> left;
  target_ = last.interrupt;
  window_ = last.window;
  passed_ = last.passed;
  for (const Group& g : last.rest) {
    if (returns_there(g, found) && leaves(g, found)) left.push_back(g);
  }
  last.exhausted = left.empty();
  if (left.empty()) {
    left = std::move(last.rest);
    left.insert(left.begin(), last.taken);
  }
  last.rest = std::move(left);
  take_back();
  return true;
}

// ---------------------------------------------------------------------------------------------
// One after the other

/// Everything is placed. Where a choice was made, what is left of the evidence may refute it.
bool EventPlacer::finish() {
  if (choices_.empty() && open_.empty()) return true;
  mode_ = Mode::trial;
  stop_writes_ = stop_instruction_ = ~std::uint64_t{0};
  gate_.set_limit(nullptr);
  if (cache_) cache_->set_limit(std::nullopt);
  left_ = go().divergence;
  return !left_ && !wrong_event_;
}

/// False when nothing fits.
bool EventPlacer::place_next(std::size_t interrupt) {
  collect(interrupt);
  if (groups_.empty() || wrong_event_) return false;
  PlacedEvent event;
  event.interrupt = interrupt;
  event.placement = Placement::unique;
  if (groups_.size() > 1 && cache_) {
    keep_what_lines_fit(stack_of(groups_.front()) == stack_of(groups_.back()));
    followed_far_ = stack_of(groups_.front()) == stack_of(groups_.back());
    event.placement = groups_.size() > 1 ? Placement::ambiguous : Placement::unique;
  } else if (groups_.size() > 1) {
    decide_by_trial(event);
  }
  if (groups_.empty()) return false;
  accept(std::move(event));
  return true;
}

/// The run that followed the latest ambiguous choice left the evidence: takes the next one. False
/// when there is none.
bool EventPlacer::revise() {
  constexpr unsigned kMostRevisions = 64;
  constexpr std::uint64_t kMostReplays = 4, kMostExtra = 1 << 20;
  if (choices_.empty() || (!cache_ && ++revisions_ > kMostRevisions)) return false;
  if (cache_ && report_.instructions > kMostReplays * furthest_ + kMostExtra) return false;
  Choice& last = choices_.back();
  if (cache_ && !last.followed_far && last.rest.size() > 2) {
    target_ = last.interrupt;
    window_ = last.window;
    groups_ = std::move(last.rest);
    passed_ = last.passed;
    keep_what_lines_fit(true);
    last.rest = std::move(groups_);
    last.followed_far = true;
  }
  take_back();
  return true;
}

/// Goes back to the latest choice and takes the first of what is left of it.
void EventPlacer::take_back() {
  Choice choice = std::move(choices_.back());
  choices_.pop_back();
  while (report_.events.size() > choice.event) {
    set_position(report_.events.back().interrupt, std::nullopt);
    report_.events.pop_back();
  }
  std::erase_if(open_, [&](const auto& item) { return item.first >= choice.event; });
  std::erase_if(uncertain_, [&](std::size_t event) { return event >= choice.event; });
  target_ = choice.interrupt;
  window_ = std::move(choice.window);
  groups_ = std::move(choice.rest);
  passed_ = std::move(choice.passed);
  followed_far_ = choice.followed_far;
  exhausted_ = choice.exhausted;
  endless_ = too_many_ = false;
  PlacedEvent event;
  event.interrupt = target_;
  event.placement = groups_.size() > 1 ? Placement::ambiguous : Placement::unique;
  accept(std::move(event));
}

void EventPlacer::fail(std::size_t interrupt) {
  for (std::size_t i = interrupt; i < recording_.interrupts.size(); ++i) {
    if (!counted_[i]) report_.events.push_back({i, Placement::none, {}, 0, false, {}});
  }
  if (left_) {
    report_.divergence = left_;
    return;
  }
  Divergence d;
  d.position = window_ ? window_->replayer.machine.position : replayer_->machine().position();
  d.transaction = recording_.interrupts[interrupt].transaction;
  d.reason = window_ ? "what follows the interrupt fits none of the boundaries it may be at"
                     : "no instruction boundary fits what the interrupt stores";
  d.expected = "interrupt between the transactions around " + std::to_string(d.transaction);
  report_.divergence = std::move(d);
}

/// Behind a write-back cache a place that was taken of several may be wrong without showing it
/// soon, and what was tried after it was tried in a run that may be another.
void EventPlacer::qualify() {
  if (!cache_) return;
  auto event = std::find_if(report_.events.begin(), report_.events.end(), [](const PlacedEvent& e) {
    return e.placement == Placement::ambiguous;
  });
  if (event == report_.events.end()) return;
  for (++event; event != report_.events.end(); ++event) {
    if (event->placement == Placement::none) continue;
    event->placement = Placement::ambiguous;
    event->more = true;
  }
}

PlacementReport EventPlacer::run() {
  if (recording_.bus.form == CacheForm::write_back && !cache_) {
    left_ = Divergence{};
    left_->reason = "there is no model of the write-back cache, which hides what interrupts push";
    fail(*next_unplaced());
    return std::move(report_);
  }
  for (;;) {
    const auto interrupt = next_unplaced();
    if (interrupt ? place_next(*interrupt) : finish()) {
      if (!interrupt) break;
      continue;
    }
    if (wrong_event_ ? correct() : revise()) continue;
    if (interrupt) fail(*interrupt);
    break;
  }
  qualify();
  return std::move(report_);
}

}  // namespace

PlacementReport place_events(Recording& recording,
                             const std::function<std::unique_ptr<EvidenceReader>()>& evidence,
                             const PlacerOptions& options) {
  return EventPlacer(recording, evidence, options).run();
}

std::optional<PlacementReport> place_events(RecordingFile& file, const PlacerOptions& options) {
  const bool possible = file.meta().evidence == EvidenceMode::full;
  if (!possible || !needs_placement(file.recording())) return std::nullopt;
  std::optional<PlacementReport> report;
  file.place([&](Recording& recording) {
    report = place_events(
        recording, [&file] { return file.evidence(); }, options);
    return report->events;
  });
  return report;
}

}  // namespace citcat
