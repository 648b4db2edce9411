#include "replay/session/replayer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "events/machine/startup_state.h"
#include "events/position_text.h"
#include "events/startup_event.h"
#include "formats/io/memory_limit.h"
#include "replay/machine/missing_memory.h"

namespace citcat {

namespace {

constexpr std::uint64_t kEndless = ~std::uint64_t{0};

/// Instructions between two looks at how much memory is taken: hundredths of a second.
constexpr std::uint64_t kBetweenMemoryLooks = std::uint64_t{1} << 20;

std::string port_text(const char* kind, std::uint32_t port, std::uint32_t size) {
  char text[80];
  std::snprintf(text, sizeof text, "%s of %u bytes at port %04x", kind, size, port);
  return text;
}

std::string instruction_text(Position p) { return "instruction " + position_text(p); }

/// The first instruction that is not made. One that the run ends within is begun, and shuts the
/// processor down.
std::uint64_t end_of(const Recording& recording) {
  const std::uint64_t counted = recording.instructions.value_or(kEndless);
  const bool ends_within = recording.end && *recording.end == Position{counted, 0};
  return counted + (ends_within ? 1 : 0);
}

/// INIT and SIPI, or a reset: another state, and memory as it is. The TLB is of no use without
/// paging, and turning that on again empties it.
void start_anew(Machine& machine, const Interrupt& event, const MemoryImage& image,
                std::optional<std::uint32_t> signature) {
  Machine::Snapshot snapshot = machine.snapshot();
  if (event.kind == kResetInterrupt) {
    snapshot.cpu = state_after_reset(snapshot.cpu, signature);
    snapshot.smbase = snapshot.cpu.smbase;
    snapshot.position.iteration = 0;
  } else {
    snapshot.cpu = state_after_init(snapshot.cpu);
    start_up(snapshot.cpu, event.vector);
  }
  snapshot.shut_down = snapshot.resume_flag = snapshot.interrupts_inhibited = false;
  snapshot.in_stack_shadow = false;
  snapshot.debug_pending = {};
  machine.restore(snapshot, image);
}

bool is_nmi_behind_shutdown(const Interrupt& event) {
  return event.kind == Interrupt::Kind::nmi && event.vector == kNmiBehindShutdown;
}

/// A reset or an NMI that comes when the processor has shut down, and not before.
bool awaits_shutdown(const Interrupt& event) {
  return is_nmi_behind_shutdown(event) ||
         (event.kind == kResetInterrupt && event.vector == kResetBehindShutdown);
}

/// Throws ReplayStopped where nothing wakes the processor, though the capture goes on.
void require_awake(const Machine& machine, const Recording& recording) {
  const bool shuts = machine.shut_down();
  if (!shuts && !machine.halted()) return;
  const std::string more = recording.instructions
                               ? std::to_string(*recording.instructions) + " instructions"
                               : "more interrupts or port reads";
  // SDM vol. 3, 6.15, interrupt 8.
  throw ReplayStopped{machine.position(),
                      shuts
                          ? "the replay shuts down, by a fault in the delivery of a double fault, "
                            "and the capture goes on"
                          : "the processor halted where nothing wakes it, and the capture goes on",
                      kNoTransaction, more, shuts ? "shutdown" : "HLT"};
}

/// Throws Error where what the replay has written takes more memory than it may.
void require_memory_for(const Machine& machine) {
  const std::uint64_t most = memory_limit() / kPageSize;
  const Memory& memory = machine.memory();
  if (memory.mapped_pages().size() <= most || memory.changed_frames().size() <= most) return;
  refuse_memory("what the replay writes", instruction_text(machine.position()));
}

/// Without their positions, external writes are placed by what the processor did before them.
bool is_anchored(const Schedule& schedule) {
  return std::any_of(schedule.external_writes.begin(), schedule.external_writes.end(),
                     [](const ExternalWrite& w) { return !w.position_known; });
}

}  // namespace

const char* replay_end_name(ReplayReport::End end) {
  switch (end) {
    case ReplayReport::End::complete:
      return "complete";
    case ReplayReport::End::stopped:
      return "stopped";
    case ReplayReport::End::diverged:
      return "diverged";
  }
  return "?";
}

Divergence make_divergence(const ReplayStopped& stop) {
  return {stop.position, stop.transaction, stop.reason, stop.expected, stop.found, {}, stop.shown};
}

std::string place_text(const Divergence& divergence) {
  std::string text = instruction_text(divergence.position);
  if (!divergence.linear) return text;
  char address[24];
  std::snprintf(address, sizeof address, " at %08" PRIx64, divergence.linear->value);
  return text + address;
}

class Replayer::Tally final : public Observer {
 public:
  explicit Tally(bool counts_bytes) : counts_bytes_(counts_bytes) {}
  /// It counts what is refused, too.
  Interest interest() const override { return {.stores = counts_bytes_, .unjudged = true}; }
  void write(PhysAddr, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    written_bytes += bytes.size();
  }
  void delivered(const DeliveredEvent& event, Position) override {
    const bool outside = event.kind != DeliveredEvent::Kind::exception &&
                         event.kind != DeliveredEvent::Kind::software;
    ++(outside ? interrupts : exceptions);
  }
  std::uint64_t written_bytes = 0, interrupts = 0, exceptions = 0;

 private:
  bool counts_bytes_;
};

class Replayer::LastHalt final : public Observer {
 public:
  explicit LastHalt(Replayer& replayer) : replayer_(replayer) {}
  Interest interest() const override { return {}; }
  void halted(Position now) override {
    if (!replayer_.wakes()) replayer_.machine_.control().stop_before(now);
  }

 private:
  Replayer& replayer_;
};

namespace {

/// The second is notified after all others.
Listeners with(Listeners listeners, Observer& first, Observer& second) {
  listeners.add(first);
  listeners.add(second);
  return listeners;
}

}  // namespace

Replayer::Replayer(const Recording& recording, const Schedule& schedule, const Listeners& listeners,
                   ReplayOptions options)
    : recording_(recording),
      schedule_(schedule),
      options_(std::move(options)),
      to_(std::min(Position{options_.to, 0}, options_.within.value_or(Position{options_.to, 0}))),
      tally_(std::make_unique<Tally>(is_anchored(schedule))),
      last_halt_(std::make_unique<LastHalt>(*this)),
      machine_(recording.initial.model, recording.bus, *this, with(listeners, *tally_, *last_halt_),
               options_.path),
      external_writes_(schedule.external_writes),
      io_reads_(schedule.io_reads),
      internal_reads_(schedule.internal_reads),
      port_bus_(recording.bus, recording.initial.model),
      port_count_(recording) {
  machine_.load(recording.initial, recording.image);
  machine_.set_polling(must_poll());
}

Replayer::~Replayer() = default;

/// Whether every boundary is of interest, of any run.
bool Replayer::must_poll() const { return is_anchored(schedule_) || options_.watch; }

void Replayer::begin_run() {
  machine_.control().clear();
  if (options_.end) machine_.control().stop_before(*options_.end);
}

ReplayReport Replayer::run() {
  begin_run();
  ended_ = false;
  report_.cut.reset();
  const auto diverge = [&](const ReplayStopped& stop) {
    report_.end = ReplayReport::End::diverged;
    report_.divergence = make_divergence(stop);
    if (stop.position == machine_.position()) report_.divergence->linear = machine_.next_linear();
  };
  try {
    loop();
    const bool complete = finished() || machine_.control().is_due(machine_.position());
    // Who watches the run, or takes a step of it, looks for itself.
    if (!complete && !options_.watch && !stepping_from_ && machine_.position() < to_)
      require_awake(machine_, recording_);
    report_.end = complete ? ReplayReport::End::complete : ReplayReport::End::stopped;
  } catch (const MissingMemory& stop) {
    diverge(stop);
    if (recording_.instructions && stop.position.instruction + 1 >= *recording_.instructions) {
      report_.end = ReplayReport::End::complete;
      report_.cut = std::exchange(report_.divergence, std::nullopt);
    }
  } catch (const ReplayStopped& stop) {
    diverge(stop);
  }
  machine_.tell_counts();
  report_.instructions = machine_.position().instruction;
  report_.interrupts = tally_->interrupts;
  report_.exceptions = tally_->exceptions;
  return report_;
}

ReplayReport Replayer::run_to(Position to) {
  to_ = to;
  return run();
}

ReplayReport Replayer::step() {
  to_ = {kEndless, 0};
  stepping_from_ = moment();
  machine_.set_polling(true);
  const ReplayReport report = run();
  machine_.set_polling(must_poll());
  stepping_from_.reset();
  return report;
}

Moment Replayer::moment() const {
  return {tally_->interrupts + tally_->exceptions, machine_.position()};
}

Replayer::Checkpoint Replayer::checkpoint() const {
  Checkpoint c;
  c.machine = machine_.snapshot();
  c.report = report_;
  c.next_interrupt = next_interrupt_;
  c.next_external = next_external_;
  c.next_io = next_io_;
  c.next_internal = next_internal_;
  c.next_dropped = next_dropped_;
  c.io_done = io_done_;
  c.written_bytes = tally_->written_bytes;
  c.interrupts = tally_->interrupts;
  c.exceptions = tally_->exceptions;
  return c;
}

void Replayer::restore(const Checkpoint& c) {
  machine_.restore(c.machine, recording_.image);
  report_ = c.report;
  next_interrupt_ = c.next_interrupt;
  next_external_ = c.next_external;
  next_io_ = c.next_io;
  next_internal_ = c.next_internal;
  next_dropped_ = c.next_dropped;
  io_done_ = c.io_done;
  tally_->written_bytes = c.written_bytes;
  tally_->interrupts = c.interrupts;
  tally_->exceptions = c.exceptions;
}

bool Replayer::step_beyond() {
  const Position before = machine_.position();
  begin_run();
  bool goes_on = false;
  try {
    goes_on = machine_.run({before.instruction + 1, 0});
  } catch (const ReplayStopped&) {
  }
  machine_.tell_counts();
  return goes_on && machine_.position() > before;
}

bool Replayer::finished() const {
  // The instruction that shuts the processor down never completes.
  const std::uint64_t reached = machine_.position().instruction + (machine_.shut_down() ? 1 : 0);
  if (recording_.instructions) return reached >= *recording_.instructions;
  return next_interrupt_ == schedule_.interrupts.size() && next_io_ == schedule_.io_reads.size();
}

Position Replayer::next_stop() const {
  Position stop = std::min(to_, Position{end_of(recording_), 0});
  if (next_interrupt_ < schedule_.interrupts.size()) {
    const Interrupt& next = schedule_.interrupts[next_interrupt_];
    const Position at = next.position;
    // The instruction that shuts the processor down is made.
    if (next.position_known)
      stop = std::min(stop, awaits_shutdown(next) ? Position{at.instruction + 1, 0} : at);
  }
  if (next_external_ < schedule_.external_writes.size()) {
    const ExternalWrite& next = external_writes_[next_external_];
    if (next.position_known) stop = std::min(stop, next.position);
  }
  if (next_dropped_ < schedule_.dropped_translations.size())
    stop = std::min(stop, schedule_.dropped_translations[next_dropped_].position);
  return stop;
}

void Replayer::loop() {
  const Position end = std::min(to_, Position{end_of(recording_), 0});
  std::uint64_t next_report = options_.progress_interval;
  std::uint64_t next_look = machine_.position().instruction + kBetweenMemoryLooks;
  for (;;) {
    apply_all_due();
    const Position now = machine_.position();
    if (ended_) return;
    if (machine_.shut_down() || now >= end) return;
    if (machine_.halted()) {
      if (next_interrupt_ >= schedule_.interrupts.size()) return;
      if (options_.watch && !schedule_.interrupts[next_interrupt_].position_known) return;
      throw ReplayStopped{
          now, "the processor halted where no interrupt wakes it",
          schedule_.interrupts[next_interrupt_].transaction,
          "interrupt at " + instruction_text(schedule_.interrupts[next_interrupt_].position),
          "HLT"};
    }
    Position stop = next_stop();
    stop = std::min(stop, Position{next_look, 0});
    if (options_.progress) stop = std::min(stop, Position{next_report, 0});
    if (!machine_.run(stop)) return;
    // Within a repeated string nothing else comes to be looked at.
    const bool early = machine_.position() < stop && !machine_.halted() && !machine_.shut_down();
    const bool looks = early || machine_.position().instruction >= next_look;
    if (looks) {
      require_memory_for(machine_);
      next_look = machine_.position().instruction + kBetweenMemoryLooks;
    }
    const bool stepped = stepping_from_ && moment() != *stepping_from_;
    if (stepped) apply_all_due();
    if (std::exchange(watch_stopped_, false) || stepped) return;
    if (options_.progress && (early || machine_.position().instruction >= next_report)) {
      next_report = machine_.position().instruction + options_.progress_interval;
      if (!options_.progress(machine_.position())) return;
    }
  }
}

void Replayer::apply_all_due() {
  while (apply_due()) {
  }
}

bool Replayer::reached(const BusAnchor& anchor) const {
  return tally_->written_bytes >= anchor.writes && io_done_ >= anchor.io &&
         tally_->interrupts >= anchor.interrupts;
}

bool Replayer::interrupt_is_due() const {
  if (next_interrupt_ >= schedule_.interrupts.size()) return false;
  const Interrupt& next = schedule_.interrupts[next_interrupt_];
  if (!next.position_known) return false;
  if (awaits_shutdown(next))
    return machine_.shut_down() || next.position.instruction < machine_.position().instruction;
  return next.position <= machine_.position();
}

bool Replayer::external_write_is_due() const {
  if (next_external_ >= schedule_.external_writes.size()) return false;
  const ExternalWrite& next = external_writes_[next_external_];
  return next.position_known ? next.position <= machine_.position() : reached(next.anchor);
}

bool Replayer::drop_is_due() const {
  return next_dropped_ < schedule_.dropped_translations.size() &&
         schedule_.dropped_translations[next_dropped_].position <= machine_.position();
}

bool Replayer::wakes() const {
  return options_.last_halt_completes || next_interrupt_ < schedule_.interrupts.size() ||
         next_external_ < schedule_.external_writes.size();
}

bool Replayer::wants_stop(Position next) {
  if (external_write_is_due()) return true;
  watch_stopped_ =
      stepping_from_ ? moment() != *stepping_from_ : options_.watch && options_.watch(next);
  return watch_stopped_;
}

bool Replayer::apply_due() {
  // Before what is delivered there: the delivery may access the page.
  if (drop_is_due()) {
    machine_.drop_translation(schedule_.dropped_translations[next_dropped_++].page);
    return true;
  }
  const bool interrupt = interrupt_is_due();
  const bool external = external_write_is_due();
  if (external && interrupt) {
    const ExternalWrite& w = external_writes_[next_external_];
    const Interrupt& event = schedule_.interrupts[next_interrupt_];
    // Another processor's write was there before what shows it: the delivery itself fills the lines
    // of its frame. Of a processor alone the bus decides at one position.
    const bool was_there =
        recording_.shares_bus && w.position_known && w.position == event.position;
    if (!was_there && event.transaction < w.transaction) return deliver_interrupt();
  }
  if (external) {
    const ExternalWrite& w = external_writes_[next_external_++];
    machine_.external_write(w.address, w.data);
    ++report_.external_writes;
    return true;
  }
  return interrupt && deliver_interrupt();
}

/// False where the run ends within it.
bool Replayer::deliver_interrupt() {
  const Interrupt& event = schedule_.interrupts[next_interrupt_];
  const Position now = machine_.position();
  if (event.position != now) {
    throw ReplayStopped{now, "an interrupt falls where the replay has no boundary",
                        event.transaction, instruction_text(event.position), instruction_text(now)};
  }
  constexpr std::uint32_t kInterruptFlag = 0x200;
  if (event.is_maskable() && (machine_.engine().system_flags() & kInterruptFlag) == 0) {
    throw ReplayStopped{now, "an interrupt was acknowledged while the replay has them disabled",
                        event.transaction, "EFLAGS.IF set", "EFLAGS.IF clear"};
  }
  ++next_interrupt_;
  if (event.kind == kStartupInterrupt || event.kind == kResetInterrupt) {
    std::optional<std::uint32_t> signature;
    if (event.kind == kResetInterrupt) {
      if (const auto told = internal_read(InternalRead::Op::cpuid, now)) signature = told->eax;
    }
    start_anew(machine_, event, recording_.image, signature);
    return true;
  }
  switch (event.kind) {
    case Interrupt::Kind::external:
    case Interrupt::Kind::nmi:
    case Interrupt::Kind::on_chip:
      ended_ = !machine_.interrupt(
          is_nmi_behind_shutdown(event) ? kNmiVector : event.vector,
          event.is_nmi() ? DeliveredEvent::Kind::nmi : DeliveredEvent::Kind::external);
      break;
    case Interrupt::Kind::none:
      break;
    case Interrupt::Kind::smi:
      ended_ = !machine_.system_management_interrupt(event.vector);
      break;
  }
  return !ended_;
}

std::uint32_t Replayer::port_read(std::uint16_t port, std::uint32_t size, Position now) {
  PortAccess access(port_bus_, port, size);
  std::uint32_t value = 0;
  std::size_t next = next_io_;
  while (!access.complete()) {
    if (next >= schedule_.io_reads.size()) {
      end_port_reads(access, port, size, value, now);
      return value;
    }
    const IoRead part = io_reads_[next++];
    value |= port_part(access, part, port, size, now);
  }
  next_io_ = next;
  io_done_ += port_count_.of(port, size);
  ++report_.io_reads;
  return value;
}

/// What this captured read gives of the access. Throws ReplayStopped where it is none of its parts.
std::uint32_t Replayer::port_part(PortAccess& access, const IoRead& part, std::uint16_t port,
                                  std::uint32_t size, Position now) const {
  const auto offset = access.take(PhysAddr{part.port}, part.size);
  if (!offset) {
    throw ReplayStopped{now, "the replay reads another port than the processor did",
                        part.transaction, port_text("read", part.port, part.size),
                        port_text("read", port, size)};
  }
  if (part.position_known && part.position != now) {
    throw ReplayStopped{now, "a port is read at another instruction than in the capture",
                        part.transaction,
                        port_text("read", port, size) + " at " + instruction_text(part.position),
                        "at " + instruction_text(now)};
  }
  return part.value << (8 * *offset);
}

/// No captured read is left for the access, or for the rest of it: the capture may end within it.
void Replayer::end_port_reads(const PortAccess& access, std::uint16_t port, std::uint32_t size,
                              std::uint32_t value, Position now) {
  if (access.begun()) {
    // The judge knows the evidence.
    if (machine_.judge() != nullptr) machine_.judge()->io_read(port, size, value, now);
    if (machine_.control().is_due(now)) return;
    if (evidence_ends_with(schedule_.io_reads.back().transaction)) {
      return machine_.control().stop_before(now);
    }
  }
  throw ReplayStopped{now, "the replay reads a port and the evidence has no read left",
                      kNoTransaction, "no port read", port_text("read", port, size)};
}

bool Replayer::evidence_ends_with(std::uint64_t transaction) const {
  if (!options_.evidence) return false;
  const std::unique_ptr<EvidenceReader> evidence = options_.evidence();
  std::uint64_t last = kNoTransaction;
  for (BusTransaction t; evidence->next(t);) last = t.index;
  return last == transaction;
}

void Replayer::port_write(std::uint16_t port, std::uint32_t size, std::uint32_t, Position) {
  io_done_ += port_count_.of(port, size);
  ++report_.io_writes;
}

std::optional<InternalRead> Replayer::internal_read(InternalRead::Op op, Position now) {
  if (next_internal_ >= schedule_.internal_reads.size()) return std::nullopt;
  const InternalRead next = internal_reads_[next_internal_];
  // A monitor may report fewer kinds than the program uses: what it did not report is not here.
  if (next.op != op || (next.position_known && next.position.instruction > now.instruction)) {
    return std::nullopt;
  }
  if (next.position_known && next.position.instruction != now.instruction) {
    throw ReplayStopped{now, "a value that crosses no bus is read at another instruction",
                        ~std::uint64_t{0}, instruction_text(next.position), instruction_text(now)};
  }
  ++next_internal_;
  return next;
}

bool Replayer::reports_each(InternalRead::Op op) const {
  const auto& reads = schedule_.internal_reads;
  return std::any_of(reads.begin(), reads.end(), [&](const InternalRead& read) {
    return read.op == op && read.position_known;
  });
}

std::optional<std::uint64_t> Replayer::missing_pdpte(unsigned, LinearAddr wanted, Position now) {
  // A PAE processor keeps these entries from the CR3 load on, which may have been before the
  // capture. The walk that needs one shows it: the next page-directory read with the right slot
  // lies in the directory the entry points to (Intel SDM vol. 3, 4.4.2).
  if (!options_.evidence) return std::nullopt;
  const std::unique_ptr<EvidenceReader> evidence = options_.evidence();
  const std::uint32_t slot = wanted.low32() >> 18 & 0xff8;
  constexpr int kReadsLookedAt = 256;
  int looked_at = 0;
  BusTransaction t;
  while (looked_at < kReadsLookedAt && evidence->next(t)) {
    if (t.op != BusOp::data_read || (t.has(kPositionKnown) && t.position < now)) continue;
    ++looked_at;
    const std::uint32_t first = t.address.offset_in_page();
    if (slot < first || slot + 4 > first + t.size) continue;
    const PhysAddr directory = t.address.page_begin();
    const auto entry = recording_.image.byte(directory.plus32(slot));
    constexpr std::uint8_t kPresent = 1;
    if (entry && (*entry & kPresent) != 0) return directory.value | kPresent;
  }
  return std::nullopt;
}

}  // namespace citcat
