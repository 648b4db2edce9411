#include "replay/event_placer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "replay/handler_saves.h"
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

/// Counts what anchors are made of, and ends a run at the first access that the bus shows behind a
/// given anchor only.
class AnchorGate final : public Sink {
 public:
  struct Progress {
    std::uint64_t writes = 0, io = 0;  ///< as in BusAnchor
    /// Addresses of the bytes of data read since the last of these or interrupt, page walks left
    /// out.
    std::vector<std::uint32_t> reads;
  };

  void attach(Machine& machine) { machine_ = &machine; }
  void follow_reads() { follows_reads_ = true; }
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
  void write(PhysAddr, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    progress_.reads.clear();
    progress_.writes += bytes.size();
    check();
  }
  void io_read(std::uint16_t, std::uint32_t, std::uint32_t, Position) override { port(); }
  void io_write(std::uint16_t, std::uint32_t, std::uint32_t, Position) override { port(); }
  void delivered(const DeliveredEvent& event, Position) override {
    if (event.kind != DeliveredEvent::Kind::exception &&
        event.kind != DeliveredEvent::Kind::software) {
      progress_.reads.clear();
    }
  }

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
  /// Asked at every boundary while memory does not change; true when a whole round of the loop went
  /// by since a state was met again, with the same number of reads.
  bool went_round(const Machine& machine, std::size_t reads) {
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
  std::uint64_t steps_ = 0, next_ = 1;
  bool met_ = false;
};

/// Boundaries that fit what stands before them, all with the processor in one state.
struct Group {
  CpuState state;
  Position first;
  std::uint64_t count = 1;
  std::vector<Position> others;
};

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
  };
  /// A choice that later traffic may refute.
  struct Choice {
    std::size_t event = 0;  ///< number in PlacementReport::events
    std::size_t interrupt = 0;
    Place window;
    std::vector<Group> rest;  ///< not tried to the end
  };
  struct Trial {
    bool survived = false;
    CpuState state;        ///< where it ended
    std::uint64_t io = 0;  ///< port accesses by then
    bool operator==(const Trial&) const = default;
  };
  enum class Mode : std::uint8_t { collect, trial };

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
  std::unique_ptr<Verifier> verifier_;
  SinkList sinks_;
  std::unique_ptr<Replayer> replayer_;
  PlacementReport report_;
  std::vector<Choice> choices_;
  unsigned revisions_ = 0;

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
  sinks_.add(gate_);
  sinks_.add(saves_);
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
  const ReplayReport report = replayer_->run();
  report_.instructions += report.instructions - std::min(before, report.instructions);
  return report;
}

EventPlacer::Place EventPlacer::here() {
  evidence_->hold();
  return {replayer_->checkpoint(), verifier_->checkpoint(), gate_.progress(),
          evidence_->position()};
}

void EventPlacer::go_back(const Place& place) {
  replayer_->restore(place.replayer);
  verifier_->restore(place.verifier);
  evidence_->seek(place.evidence);
  gate_.restore(place.gate);
  gate_.reopen();
}

void EventPlacer::set_position(std::size_t interrupt, std::optional<Position> position) {
  Interrupt& event = recording_.interrupts[interrupt];
  event.position_known = position.has_value();
  event.position = position.value_or(Position{});
}

// ---------------------------------------------------------------------------------------------
// Which boundaries fit what stands before the interrupt

bool EventPlacer::in_window() const {
  return replayer_->next_interrupt() == target_ && gate_.at(target().anchor);
}

/// What must hold at the boundary the interrupt was taken at.
bool EventPlacer::fits() const {
  const Machine& machine = replayer_->machine();
  const Engine& engine = machine.engine();
  if (target().kind == Interrupt::Kind::external &&
      ((engine.system_flags() & kFlagIf) == 0 || engine.inhibited())) {
    return false;
  }
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
  if (mode_ == Mode::collect) return in_window() && stopped_at_ != now && watch_window(now);
  return gate_.progress().writes >= stop_writes_ || now.instruction >= stop_instruction_;
}

bool EventPlacer::watch_window(Position now) {
  const std::size_t reads = gate_.progress().reads.size();
  endless_ = loop_.went_round(replayer_->machine(), reads);
  window_over_ = endless_ || (window_ && check_reads_ && reads > expected_reads_.size());
  if (!window_over_ && (!fits() || (window_ && (!registers_fit() || !reads_fit())))) return false;
  stopped_at_ = now;
  return true;
}

/// The boundary the replay stands at fits. False when there are too many to look at.
bool EventPlacer::add_candidate() {
  constexpr std::size_t kMostGroups = 2048;
  const CpuState state = replayer_->machine().save();
  const Position now = replayer_->machine().position();
  for (Group& group : groups_) {
    if (!(group.state == state)) continue;
    ++group.count;
    if (group.others.size() < kListedPositions) group.others.push_back(now);
    return true;
  }
  too_many_ = groups_.size() == kMostGroups;
  if (!too_many_) groups_.push_back({state, now, 1, {}});
  return !too_many_;
}

void EventPlacer::collect_from_here() {
  for (;;) {
    const ReplayReport report = go();
    if (report.end == ReplayReport::End::diverged && !window_) left_ = report.divergence;
    const bool halted = replayer_->machine().halted() && in_window() && fits();
    if (gate_.closed() || window_over_ || report.end != ReplayReport::End::stopped) return;
    if (replayer_->machine().halted() ? !halted : stopped_at_ != replayer_->machine().position())
      return;
    if (!window_) {
      window_ = here();
      expect_reads();
    }
    if (reads_fit() && registers_fit() && !add_candidate()) return;
    if (halted || (groups_.size() > 1 && !learned_)) return;
  }
}

/// Goes through the window again from its first boundary that fits.
void EventPlacer::collect_again() {
  go_back(*window_);
  groups_.clear();
  begin_window();
  collect_from_here();
}

void EventPlacer::begin_window() {
  mode_ = Mode::collect;
  gate_.set_limit(&target().anchor);
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
  registers_.clear();
  learned_ = check_reads_ = false;
  begin_window();
  collect_from_here();
  if (!window_) return;
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
  const Group& chosen = groups_.front();
  if (chosen.count > 1 && event.placement == Placement::unique) {
    event.placement = Placement::equivalent;
  }
  // What was not looked at may fit as well.
  if (too_many_) event.placement = Placement::ambiguous;
  event.position = chosen.first;
  event.others = chosen.others;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    event.candidates += groups_[i].count;
    if (i != 0 && event.others.size() < kListedPositions) event.others.push_back(groups_[i].first);
  }
  event.more = event.candidates > 1 && (endless_ || too_many_);
  go_back(*window_);
  evidence_->release();
  set_position(event.interrupt, event.position);
  if (event.placement == Placement::ambiguous) {
    // For the case that something later refutes the choice; the latest are the likeliest.
    constexpr std::size_t kMostChoices = 8;
    if (choices_.size() == kMostChoices) choices_.erase(choices_.begin());
    choices_.push_back(
        {report_.events.size(), event.interrupt, *window_, {groups_.begin() + 1, groups_.end()}});
  }
  report_.events.push_back(std::move(event));
}

// ---------------------------------------------------------------------------------------------
// One after the other

/// Everything is placed. Where a choice was made, what is left of the evidence may refute it.
bool EventPlacer::finish() {
  if (choices_.empty()) return true;
  mode_ = Mode::trial;
  stop_writes_ = stop_instruction_ = ~std::uint64_t{0};
  gate_.set_limit(nullptr);
  left_ = go().divergence;
  return !left_;
}

/// False when nothing fits.
bool EventPlacer::place_next(std::size_t interrupt) {
  collect(interrupt);
  if (groups_.empty()) return false;
  PlacedEvent event;
  event.interrupt = interrupt;
  event.placement = Placement::unique;
  if (groups_.size() > 1) decide_by_trial(event);
  if (groups_.empty()) return false;
  accept(std::move(event));
  return true;
}

/// The run that followed the latest ambiguous choice left the evidence: takes the next one. False
/// when there is none.
bool EventPlacer::revise() {
  constexpr unsigned kMostRevisions = 64;
  if (choices_.empty() || ++revisions_ > kMostRevisions) return false;
  Choice choice = std::move(choices_.back());
  choices_.pop_back();
  while (report_.events.size() > choice.event) {
    set_position(report_.events.back().interrupt, std::nullopt);
    report_.events.pop_back();
  }
  target_ = choice.interrupt;
  window_ = std::move(choice.window);
  groups_ = std::move(choice.rest);
  endless_ = too_many_ = false;
  PlacedEvent event;
  event.interrupt = target_;
  event.placement = groups_.size() > 1 ? Placement::ambiguous : Placement::unique;
  accept(std::move(event));
  return true;
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

PlacementReport EventPlacer::run() {
  if (recording_.bus.form == CacheForm::write_back) {
    left_ = Divergence{};
    left_->reason = "a write-back cache does not show what interrupts push";
    fail(*next_unplaced());
    return std::move(report_);
  }
  for (;;) {
    const auto interrupt = next_unplaced();
    if (interrupt ? place_next(*interrupt) : finish()) {
      if (!interrupt) break;
      continue;
    }
    if (revise()) continue;
    if (interrupt) fail(*interrupt);
    break;
  }
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
