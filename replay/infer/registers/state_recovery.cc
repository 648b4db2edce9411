#include "replay/infer/registers/state_recovery.h"

#include <algorithm>
#include <array>
#include <utility>

#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "replay/infer/places/handler_saves.h"
#include "replay/infer/places/interrupt_evidence.h"
#include "replay/infer/registers/protected_recovery.h"
#include "replay/infer/registers/recovery_rounds.h"
#include "replay/verify/bus_order_check.h"

namespace citcat {

const char* register_source_name(RegisterSource source) {
  switch (source) {
    case RegisterSource::frame:
      return "frame";
    case RegisterSource::saved:
      return "saved";
    case RegisterSource::solved:
      return "solved";
    case RegisterSource::assumed:
      return "assumed";
    case RegisterSource::free:
      return "free";
    case RegisterSource::given:
      return "given";
  }
  return "?";
}

namespace {

constexpr std::uint32_t kRealModeBytes = 0x110000;  ///< FFFF:FFFF + 1, rounded up to a frame
constexpr std::array<const char*, 8> kWordRegisters{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
constexpr std::array<const char*, 4> kWordSegments{"es", "cs", "ss", "ds"};

/// One register that may be guessed.
struct Unknown {
  std::string name;
  bool is_segment = false;
  std::uint16_t value = 0;
  RegisterSource source = RegisterSource::free;
  std::uint64_t transaction = kNoTransaction;
  bool known() const { return source == RegisterSource::saved; }
};

class StateRecovery {
 public:
  StateRecovery(Recording recording, const EvidenceSource& evidence, TimeBudget* time)
      : recording_(std::move(recording)), evidence_(evidence), time_(time) {}
  RecoveredState run();

 private:
  void read_frame();
  std::vector<std::uint16_t> stack_segments() const;
  void solve_with_each_stack();
  void solve_all();
  void read_saves();
  RecoveryProgress replay(HandlerSaves* saves = nullptr);
  void solve();
  bool improve(const RecoveryProgress& now);
  std::vector<std::uint16_t> guesses(const Unknown& u,
                                     const BusOrderCheck::Difference& difference) const;
  bool depends(Unknown& u, const RecoveryProgress& now);
  void find_free();
  void judge_stack_segment();
  RecoveredState result();
  void fill_state();
  Unknown* find(const std::string& name);

  Recording recording_;  ///< as guessed so far
  const EvidenceSource& evidence_;
  TimeBudget* const time_;
  std::vector<InterruptEvidence> surroundings_;
  std::uint16_t flags_ = 0, cs_ = 0, ip_ = 0;
  std::uint32_t stack_ = 0;  ///< linear SS:SP before the interrupt, as captured
  std::uint16_t ss_ = 0;
  RegisterSource stack_source_ = RegisterSource::assumed;
  std::vector<Unknown> unknown_;
  std::vector<bool> counted_;
  std::optional<Divergence> failure_;
  std::uint64_t replays_ = 0;
};

Unknown* StateRecovery::find(const std::string& name) {
  const auto it = std::find_if(unknown_.begin(), unknown_.end(),
                               [&](const Unknown& u) { return u.name == name; });
  return it == unknown_.end() ? nullptr : &*it;
}

/// FLAGS, CS and IP are pushed in this order, downward (8086 Family User's Manual, 2.6).
void StateRecovery::read_frame() {
  const auto& order = surroundings_.front().stored_order();
  constexpr std::size_t kFrameBytes = 6;
  if (order.size() < kFrameBytes) {
    throw UsageError("the capture ends before the interrupt's frame was written");
  }
  const auto begin = order.begin(), end = order.begin() + kFrameBytes;
  const std::uint64_t lowest = *std::min_element(begin, end);
  const std::uint64_t highest = *std::max_element(begin, end);
  if (highest - lowest != kFrameBytes - 1) {
    throw UsageError("what the interrupt stores is not the frame of a processor in real mode");
  }
  const auto word = [&](std::uint64_t at) {
    const auto& e = surroundings_.front();
    return static_cast<std::uint16_t>(*e.stored(PhysAddr{at}) | *e.stored(PhysAddr{at + 1}) << 8);
  };
  ip_ = word(lowest);
  cs_ = word(lowest + 2);
  flags_ = word(lowest + 4);
  stack_ = static_cast<std::uint32_t>(lowest) + kFrameBytes;
}

/// SS:SP is known as a sum. A program with one segment has SS = CS; others have a segment for the
/// stack, in which it is not far from the beginning.
std::vector<std::uint16_t> StateRecovery::stack_segments() const {
  const std::uint32_t mask = recording_.bus.address_mask;
  constexpr std::uint32_t kRealModeFrame = 6;
  std::vector<std::uint16_t> segments{cs_};
  for (const char* name : {"ds", "es"}) {
    for (const Unknown& u : unknown_) {
      if (u.name == name && u.known()) segments.push_back(u.value);
    }
  }
  for (const std::uint32_t offset : {0x100u, 0x1000u, 0xfff0u}) {
    segments.push_back(static_cast<std::uint16_t>((stack_ - offset) >> 4));
  }
  std::erase_if(segments, [&](std::uint16_t segment) {
    const std::uint32_t offset = (stack_ - (std::uint32_t{segment} << 4)) & mask;
    return offset > 0xffff || offset < kRealModeFrame;
  });
  return segments;
}

void StateRecovery::fill_state() {
  CpuState& s = recording_.initial;
  const CpuModel model = s.model;
  s = CpuState();
  s.model = model;
  set_register(s, "cs", cs_);
  set_register(s, "eip", ip_);
  set_register(s, "eflags", flags_);
  set_register(s, "ss", ss_);
  set_register(s, "esp", (stack_ - (std::uint32_t{ss_} << 4)) & 0xffff);
  for (const Unknown& u : unknown_) {
    set_register(s, (u.is_segment ? "" : "e") + u.name, u.value);
  }
}

/// Replays from the state as guessed so far, up to the first interrupt without a place.
RecoveryProgress StateRecovery::replay(HandlerSaves* saves) {
  if (is_spent(time_)) return no_progress(*time_);
  ++replays_;
  fill_state();
  BusOrderCheck check(evidence_(), placed_interrupts(recording_));
  GuessedReplay::Options options;
  options.time = time_;
  if (saves != nullptr) {
    constexpr std::uint64_t kLongestPrologue = 256;
    options.to = kLongestPrologue;
    options.compares = false;
    options.observers = {saves};
  }
  GuessedReplay replay(recording_, evidence_, check, options);
  replay.define_memory(kRealModeBytes);
  return replay.run();
}

void StateRecovery::read_saves() {
  HandlerSaves saves;
  saves.begin();
  replay(&saves);
  const InterruptEvidence& evidence = surroundings_.front();
  for (const SavedRegister& save : saves.saves()) {
    const std::string name =
        save.is_segment ? kWordSegments[save.number & 3] : kWordRegisters[save.number];
    Unknown* const u = save.is_segment && save.number > kDs ? nullptr : find(name);
    const auto low = evidence.stored(save.address), high = evidence.stored(save.address.plus32(1));
    if (u == nullptr || u->known() || !low || !high) continue;
    u->value = static_cast<std::uint16_t>(*low | *high << 8);
    u->source = RegisterSource::saved;
    u->transaction = recording_.interrupts.front().transaction;
  }
}

/// Values of a register that may turn what the replay does into what the bus shows, if that is the
/// register plus something.
std::vector<std::uint16_t> StateRecovery::guesses(
    const Unknown& u, const BusOrderCheck::Difference& difference) const {
  std::vector<std::uint32_t> values;
  const std::uint32_t mask = recording_.bus.address_mask;
  const std::uint32_t by = difference.expected.address.minus32(difference.found.address) & mask;
  if (by != 0 && u.is_segment) {
    if (by % 16 == 0) values.push_back(u.value + by / 16);
    // Down: the difference is one modulo the captured address bits.
    if (by % 16 == 0) values.push_back(u.value - ((mask + 1 - by) & mask) / 16);
  } else if (by != 0) {
    values = {u.value + by, u.value - by};
  } else {
    const auto d = static_cast<std::uint32_t>(difference.expected.value - difference.found.value);
    values = {u.value + d, u.value + (d << 8), u.value - d, u.value - (d << 8)};
  }
  std::vector<std::uint16_t> guesses;
  for (const std::uint32_t value : values) guesses.push_back(static_cast<std::uint16_t>(value));
  return guesses;
}

bool StateRecovery::depends(Unknown& u, const RecoveryProgress& now) {
  const std::uint16_t before = u.value;
  bool different = false;
  for (const int change : {0x0110, 0x5a31}) {
    u.value = static_cast<std::uint16_t>(before + change);
    different |= !replay().same(now);
  }
  u.value = before;
  return different;
}

/// Changes one register so that the replay agrees further; false when none does that.
bool StateRecovery::improve(const RecoveryProgress& now) {
  if (!now.difference) return false;
  Unknown* best = nullptr;
  std::uint16_t best_value = 0;
  std::uint64_t most = now.agreed;
  for (Unknown& u : unknown_) {
    if (u.known() || !depends(u, now)) continue;
    const std::uint16_t before = u.value;
    for (const std::uint16_t guess : guesses(u, *now.difference)) {
      u.value = guess;
      const RecoveryProgress outcome = replay();
      if (outcome.agreed <= most && !(outcome.ok() && best == nullptr)) continue;
      most = outcome.agreed;
      best = &u;
      best_value = guess;
    }
    u.value = before;
  }
  if (best == nullptr) return false;
  best->value = best_value;
  best->source = RegisterSource::solved;
  if (best->transaction == kNoTransaction) {
    best->transaction = now.difference->expected.transaction;
  }
  return true;
}

/// Solves as far as the interrupts have places.
void StateRecovery::solve() {
  constexpr int kMostSteps = 64;
  for (int step = 0; step < kMostSteps; ++step) {
    const RecoveryProgress now = replay();
    failure_.reset();
    if (now.ok()) return;
    if (improve(now)) continue;
    failure_ = describe(now);
    return;
  }
}

/// Registers that were never needed: with other values in all of them the replay is the same.
void StateRecovery::find_free() {
  const RecoveryProgress now = replay();
  for (Unknown& u : unknown_) {
    if (u.source != RegisterSource::free) continue;
    // The value that nobody chose is the one that fits, and others are not.
    const bool needed = depends(u, now);
    if (is_spent(time_)) return;
    if (needed) u.source = RegisterSource::solved;
  }
  std::vector<std::uint16_t> before;
  for (Unknown& u : unknown_) {
    before.push_back(u.value);
    if (u.source == RegisterSource::free) u.value = static_cast<std::uint16_t>(u.value ^ 0xa5c3);
  }
  const bool free = replay().same(now) || is_spent(time_);
  for (std::size_t i = 0; i < unknown_.size(); ++i) {
    unknown_[i].value = before[i];
    if (!free && unknown_[i].source == RegisterSource::free) {
      unknown_[i].source = RegisterSource::assumed;
    }
  }
}

void StateRecovery::judge_stack_segment() {
  const RecoveryProgress now = replay();
  const std::uint16_t before = ss_;
  bool same = true;
  for (const int down : {1, 0x123}) {
    ss_ = static_cast<std::uint16_t>(before - down);
    same &= replay().same(now);
  }
  ss_ = before;
  if (is_spent(time_)) return;
  stack_source_ = same ? RegisterSource::assumed : RegisterSource::solved;
}

RecoveredState StateRecovery::result() {
  fill_state();
  RecoveredState result;
  result.state = recording_.initial;
  result.divergence = failure_;
  if (has_ended(time_)) result.given_up = time_->text();
  result.replays = replays_;
  const std::uint64_t interrupt = recording_.interrupts.front().transaction;
  result.registers = {{"cs", cs_, RegisterSource::frame, interrupt},
                      {"ip", ip_, RegisterSource::frame, interrupt},
                      {"flags", flags_, RegisterSource::frame, interrupt}};
  result.registers.push_back({"ss", ss_, stack_source_, interrupt});
  result.registers.push_back({"sp", result.state.gpr[kEsp], stack_source_, interrupt});
  for (const Unknown& u : unknown_) {
    result.registers.push_back({u.name, u.value, u.source, u.transaction});
    if (u.source == RegisterSource::free) {
      result.state.unknown.push_back((u.is_segment ? "" : "e") + u.name);
    }
  }
  recording_.initial = result.state;
  return result;
}

void StateRecovery::solve_all() {
  failure_ = solve_and_place(
      recording_, evidence_,
      [this] {
        solve();
        return failure_;
      },
      [this] { return replay(); }, time_);
}

RecoveredState StateRecovery::run() {
  if (recording_.interrupts.empty()) {
    throw UsageError("the recording has no interrupt to recover the state at");
  }
  surroundings_ = scan_interrupts(recording_, true, *evidence_());
  read_frame();
  ss_ = static_cast<std::uint16_t>((stack_ - 0x100) >> 4);
  counted_ = begin_at_first_interrupt(recording_);
  for (const char* name : {"ax", "cx", "dx", "bx", "bp", "si", "di"})
    unknown_.push_back({.name = name});
  for (const char* name : {"ds", "es"}) unknown_.push_back({.name = name, .is_segment = true});
  solve_with_each_stack();
  if (has_ended(time_)) failure_ = given_up(*time_);
  RecoveredState recovered = result();
  if (failure_) take_back_placements(recording_, counted_);
  recovered.recording = std::move(recording_);
  return recovered;
}

void StateRecovery::solve_with_each_stack() {
  read_saves();
  for (const std::uint16_t segment : stack_segments()) {
    ss_ = segment;
    take_back_placements(recording_, counted_);
    for (Unknown& u : unknown_) {
      if (!u.known()) u = {.name = u.name, .is_segment = u.is_segment};
    }
    solve_all();
    if (!failure_ || is_spent(time_)) break;
  }
  if (!failure_) {
    find_free();
    judge_stack_segment();
  }
}

/// What the first interrupt does in protected mode, if that is what it is.
std::optional<ProtectedEntry> protected_entry(const Recording& recording,
                                              EvidenceReader& evidence) {
  constexpr std::size_t kEntryTransactions = 256;
  if (recording.interrupts.empty()) return std::nullopt;
  const Interrupt& first = recording.interrupts.front();
  std::vector<BusTransaction> traffic;
  for (BusTransaction t; traffic.size() < kEntryTransactions && evidence.next(t);) {
    if (t.index >= first.transaction) traffic.push_back(t);
  }
  return cpu_traits(recording.initial.model).has_long_mode
             ? find_long_mode_entry(first.vector, traffic, recording.image)
             : find_protected_entry(first.vector, traffic, recording.image);
}

}  // namespace

RecoveredState recover_state(Recording recording, const EvidenceSource& evidence,
                             TimeBudget* time) {
  if (recording.bus.form != CacheForm::none) {
    throw UsageError("--recover-state works only for processors without a cache");
  }
  const CpuTraits& traits = cpu_traits(recording.initial.model);
  if (!traits.sixteen_bit) {
    const auto entry = protected_entry(recording, *evidence());
    if (entry) return recover_protected_state(std::move(recording), evidence, *entry, time);
  }
  if (traits.has_long_mode) {
    throw UsageError(
        "the interrupt's accesses are not recognised as those of long mode: it reads no gate of 16 "
        "bytes and pushes no frame of 40 bytes. For a processor with long mode, registers are "
        "recovered only in long mode");
  }
  return StateRecovery(std::move(recording), evidence, time).run();
}

}  // namespace citcat
