#include "replay/processors/machine_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <utility>

#include "events/startup_event.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

/// LOCK, or an exchange with memory, which locks by itself (Intel SDM vol. 3, 8.1.2.2).
bool locks(const DecodedInstruction& info) {
  if (info.lock) return true;
  constexpr std::array<std::uint8_t, 10> kPrefixes{0x26, 0x2e, 0x36, 0x3e, 0x64,
                                                   0x65, 0x66, 0x67, 0xf2, 0xf3};
  const auto is_prefix = [&](std::uint8_t byte) {
    constexpr std::uint8_t kRex = 0x40, kRexMask = 0xf0;
    if (info.bits64 && (byte & kRexMask) == kRex) return true;
    return std::find(kPrefixes.begin(), kPrefixes.end(), byte) != kPrefixes.end();
  };
  std::size_t opcode = 0;
  while (opcode + 1 < info.length && is_prefix(info.bytes[opcode])) ++opcode;
  constexpr std::uint8_t kExchangeBytes = 0x86, kExchange = 0x87;
  return info.bytes[opcode] == kExchangeBytes || info.bytes[opcode] == kExchange;
}

/// The registers of its APIC are on the processor's own chip, at the address of all others'.
bool is_own_chip(PhysAddr a) { return a.is_within32(PhysAddr{kApicRegisters}, kApicRegisterBytes); }

std::uint32_t low_dword(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

bool takes_interrupt(const BusTransaction& t) {
  return t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi;
}

/// What tells a message from others of its sender's, as far as it is always known.
std::uint32_t kind_of(const ApicMessage& m) {
  return m.vector | std::uint32_t{m.mode} << 8 | std::uint32_t{m.details} << 16;
}

}  // namespace

/// Tells what one processor does, when it is known what instruction it belongs to.
class MachineSession::Teller final : public Observer {
 public:
  Teller(std::uint8_t processor, std::uint32_t line_bytes, ApicReceivers& receivers,
         MachineListener& listener)
      : processor_(processor),
        line_bytes_(line_bytes),
        receivers_(receivers),
        listener_(listener) {}
  Interest interest() const override { return Interest::everything(); }

  void watch(const Machine& machine) override { machine_ = &machine; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    keep(a, size, false, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    if (is_own_chip(a)) set_register(a.low32() - kApicRegisters, low_dword(bytes));
    keep(a, static_cast<std::uint32_t>(bytes.size()), true, kind, now);
  }
  void instruction(const ExecutedInstruction& e, Position) override {
    settle(e.linear, !kept_.empty() && locks(*e.info));
    if (e.info->kind == InstructionClass::call) put({.kind = Told::Kind::call, .from = e.linear});
    if (e.info->kind == InstructionClass::ret) put({.kind = Told::Kind::ret});
  }
  /// Accesses of the delivery itself are reported with the first instruction of its handler.
  void delivered(const DeliveredEvent& event, Position now) override {
    // They belong to an instruction that begins anew, or to a delivery that fails.
    settle(code_address(machine_->engine()), false);
    if (event.kind != DeliveredEvent::Kind::external && event.kind != DeliveredEvent::Kind::nmi)
      return;
    Told told{.kind = Told::Kind::interrupt, .signal = event.vector, .number = ++delivered_};
    told.access.position = now;
    put(told);
  }

  bool holds() const { return !held_.empty(); }
  /// Tells what is held. Holds what begins with a store to `line`, or a locked access, or with an
  /// interrupt that the bus has not shown.
  void release(std::optional<PhysAddr> line) {
    barrier_ = line;
    const std::vector<Told> held = std::exchange(held_, {});
    for (const Told& told : held) put(told);
  }
  /// The bus shows that it takes an interrupt.
  void show_interrupt() { ++shown_; }
  void show(const BusTransaction& t) { listener_.shown(processor_, t); }
  /// The bus shows it there: interrupts before that need no record of their own.
  void reach(Position at) {
    for (const Told& told : held_) {
      if (told.kind == Told::Kind::interrupt && told.access.position < at)
        shown_ = std::max(shown_, told.number);
    }
  }
  /// It begins, or begins anew.
  void start() { put({.kind = Told::Kind::interrupt, .signal = kStartSignal}); }
  /// The APIC bus shows that it sends a message. False where its replay has not sent it yet.
  bool shows(const ApicMessage& m) {
    const auto its = std::find(sent_.begin(), sent_.end(), kind_of(m));
    if (its == sent_.end()) return false;
    sent_.erase(sent_.begin(), its + 1);
    return true;
  }
  /// Tells a message of which the replay does not show the command.
  void send(const ApicMessage& m) {
    shown_before_.push_back(kind_of(m));
    tell_message(m, true);
  }
  /// An interrupt or exception has been delivered, and its handler has not begun: tells what that
  /// accessed. False where there is nothing to tell.
  bool flush() {
    if (kept_.empty()) return false;
    settle(code_address(machine_->engine()), false);
    return true;
  }

 private:
  struct Told {
    enum class Kind : std::uint8_t { access, call, ret, interrupt, message };
    Kind kind = Kind::access;
    std::uint16_t signal = 0;
    std::uint64_t number = 0;   ///< of an interrupt
    std::uint32_t command = 0;  ///< of a message
    LinearAddr from{};
    ProcessorAccess access{};
  };

  void set_register(std::uint32_t offset, std::uint32_t value) {
    receivers_.wrote(processor_, offset, value);
    if (offset == kApicCommandHigh) destination_ = static_cast<std::uint8_t>(value >> 24);
    if (offset == kApicCommand) put({.kind = Told::Kind::message, .command = value});
  }

  void keep(PhysAddr a, std::uint32_t size, bool write, AccessKind kind, Position now) {
    if (is_own_chip(a)) return;
    ProcessorAccess access;
    access.processor = processor_;
    access.kind = kind;
    access.write = write;
    access.size = static_cast<std::uint16_t>(size);
    access.address = a;
    access.position = now;
    kept_.push_back(access);
  }
  void settle(LinearAddr instruction, bool locked) {
    for (ProcessorAccess& access : kept_) {
      access.locked = locked && access.kind == AccessKind::data;
      access.instruction = instruction;
      put({.access = access});
    }
    kept_.clear();
  }
  bool is_held(const Told& told) const {
    if (!held_.empty()) return true;
    if (told.kind == Told::Kind::interrupt) return told.number > shown_;
    const ProcessorAccess& a = told.access;
    if (!barrier_ || told.kind != Told::Kind::access || (!a.write && !a.locked)) return false;
    const PhysAddr last = a.address.plus32(a.size - 1U);
    return a.address.is_within32(*barrier_, line_bytes_) ||
           last.is_within32(*barrier_, line_bytes_);
  }
  void put(const Told& told) {
    if (is_held(told)) return held_.push_back(told);
    switch (told.kind) {
      case Told::Kind::access:
        return listener_.access(told.access);
      case Told::Kind::call:
        return listener_.called(processor_, told.from);
      case Told::Kind::ret:
        return listener_.returned(processor_);
      case Told::Kind::interrupt:
        return listener_.interrupted(processor_, told.signal);
      case Told::Kind::message:
        return command(told.command);
    }
  }
  void command(std::uint32_t low) {
    ApicMessage m = ApicMessage::of_command(low);
    m.destination = destination_.value_or(0);
    const auto shown = std::find(shown_before_.begin(), shown_before_.end(), kind_of(m));
    if (shown != shown_before_.end()) {
      shown_before_.erase(shown);
      return;
    }
    sent_.push_back(kind_of(m));
    tell_message(m, destination_.has_value());
  }
  void tell_message(const ApicMessage& m, bool knows_destination) {
    ProcessorMessage message;
    message.from = processor_;
    message.signal = m.vector;
    if (m.mode == ApicMessage::kNmi) message.signal = kNmiSignal;
    if (m.mode == ApicMessage::kInit || m.mode == ApicMessage::kStartup)
      message.signal = kStartSignal;
    message.to = receivers_.of(m, processor_, knows_destination).may;
    message.to_one = m.is_to_one_of_many();
    listener_.message(message);
  }

  std::uint8_t processor_;
  std::uint32_t line_bytes_;
  ApicReceivers& receivers_;
  MachineListener& listener_;
  const Machine* machine_ = nullptr;
  std::vector<ProcessorAccess> kept_;  ///< of an instruction that is not over
  std::optional<PhysAddr> barrier_;
  std::vector<Told> held_;
  std::uint64_t delivered_ = 0, shown_ = 0;  ///< interrupts: in the replay, and on the bus
  std::optional<std::uint8_t> destination_;  ///< in its command register
  /// Messages that were told and not shown yet, and those that were shown and not asked for yet.
  std::deque<std::uint32_t> sent_, shown_before_;
};

/// One processor on its way.
class MachineSession::Run {
 public:
  /// `end`: instructions of its recording.
  Run(ReplaySession& session, Teller& teller, std::deque<BusNote> taken, std::uint64_t end)
      : session_(session), teller_(teller), taken_(std::move(taken)), end_(end) {}

  bool is_whole() const { return session_.position().instruction >= end_ || !diverged_; }
  /// The bus shows it there.
  void show(const SharedEvent& event) {
    const BusTransaction& t = event.t;
    const bool starts = !std::exchange(is_begun_, true) || is_startup(t);
    if (takes_interrupt(t)) teller_.show_interrupt();
    // Accesses to its own chip have no clock of their own.
    if (is_own_chip(t.address) && t.has(kUncacheable)) return go_ahead(event);
    // An interrupt comes before what it counts to, and so does the write-back of a line that
    // another one asks for. All else is of that instruction, or iteration, which is over with the
    // last of its transactions: another one may write back a line in between.
    const bool before = takes_interrupt(t) || t.has(kSnoop);
    const bool over = !before && (!event.next || event.next->position != t.position);
    teller_.reach(t.position);
    teller_.release(std::nullopt);
    if (starts) teller_.start();
    go_to(t.position);
    teller_.show(t);
    go_to({t.position.instruction, t.position.iteration + (over ? 1 : 0)});
    is_within_ = !over && !before;
    if (!is_within_) go_ahead(event);
  }
  /// The bus shows that another one goes on. Where this one has not come to the end of what it is
  /// at, it has come to the handler of an exception, or an interrupt.
  void leave() {
    if (!std::exchange(is_within_, false) || teller_.flush() || ended_) return;
    follow(session_.step());
    reached_ = std::max(reached_, session_.position());
    teller_.flush();
  }
  /// It takes a line that it shares.
  void take_line() {
    if (!taken_.empty()) taken_.pop_front();
    go_ahead();
  }
  /// The APIC bus shows its message.
  void send(const ApicMessage& message) {
    if (teller_.shows(message)) return;
    leave();
    if (!teller_.shows(message)) teller_.send(message);
  }
  /// To the end.
  void finish() {
    teller_.reach({end_ + 1, 0});
    teller_.release(std::nullopt);
    go_to({end_, 0});
    teller_.reach({end_ + 1, 0});
    teller_.release(std::nullopt);
  }

 private:
  void go_to(Position to) {
    if (ended_ || to <= reached_) return;
    reached_ = to;
    follow(session_.run_to(to));
  }
  void follow(const ReplayReport& report) {
    diverged_ = report.end == ReplayReport::End::diverged;
    ended_ = diverged_ || report.cut;
  }
  void go_ahead(const SharedEvent& event) {
    next_ = event.next;
    if (next_ && next_->clock <= event.t.clock) return;
    is_within_ = false;
    go_ahead();
  }
  /// Within its cache, up to its next transaction, or the end, or to the store for which it takes a
  /// line.
  void go_ahead() {
    const Position to = next_ ? next_->position : Position{end_, 0};
    const bool takes = !taken_.empty() && (!next_ || taken_.front().clock <= next_->clock);
    teller_.release(takes ? std::optional(taken_.front().address) : std::nullopt);
    while (!ended_ && reached_ < to && !teller_.holds()) {
      // Not far beyond the store: what is held takes memory.
      constexpr std::uint64_t kStep = 4096;
      const Position step{reached_.instruction + kStep, 0};
      go_to(takes ? std::min(to, step) : to);
    }
  }

  ReplaySession& session_;
  Teller& teller_;
  std::deque<BusNote> taken_;  ///< lines that it is still to take
  std::uint64_t end_;
  Position reached_;
  std::optional<SharedEvent::Next> next_;
  bool is_within_ = false;  ///< an instruction, or iteration, or delivery
  bool is_begun_ = false, ended_ = false, diverged_ = false;
};

MachineSession::MachineSession(const MachineFile& machine, MachineListener& listener,
                               const std::optional<ComparisonPolicy>& policy)
    : machine_(machine),
      listener_(listener),
      files_(open_processors(machine)),
      receivers_(apic_ids_of(files_)) {
  const std::uint32_t line_bytes = shared_line_bytes(files_.front().recording());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    tellers_.push_back(
        std::make_unique<Teller>(static_cast<std::uint8_t>(i), line_bytes, receivers_, listener));
    SessionOptions options;
    options.check = policy.has_value();
    if (policy) options.policy = *policy;
    sessions_.push_back(
        std::make_unique<ReplaySession>(files_[i], tellers_.back().get(), std::move(options)));
  }
}

MachineSession::~MachineSession() = default;

void MachineSession::pass(const SharedEvent& event, std::vector<Run>& runs) {
  if (event.note) {
    const BusNote& note = *event.note;
    clock_ = note.clock;
    if (note.kind == BusNote::Kind::device_write) listener_.device_write(note.address, note.size);
    if (event.processor >= runs.size()) return;
    if (note.kind == BusNote::Kind::invalidate) runs[event.processor].take_line();
    if (note.kind == BusNote::Kind::message) runs[event.processor].send(ApicMessage(note.data));
    return;
  }
  if (!event.t.has(kPositionKnown)) return;
  clock_ = event.t.clock;
  const bool is_asked_for = event.t.has(kSnoop);
  for (std::size_t p = 0; p < runs.size() && !is_asked_for; ++p)
    if (p != event.processor) runs[p].leave();
  runs[event.processor].show(event);
}

std::vector<std::size_t> MachineSession::run(const std::function<bool()>& enough) {
  std::vector<std::deque<BusNote>> taken(files_.size());
  for (const BusNote& note : machine_.notes()) {
    const bool takes = note.kind == BusNote::Kind::invalidate && note.processor < taken.size();
    if (takes) taken[note.processor].push_back(note);
  }
  std::vector<Run> runs;
  for (std::size_t p = 0; p < files_.size(); ++p) {
    runs.emplace_back(*sessions_[p], *tellers_[p], std::move(taken[p]),
                      files_[p].recording().instructions.value_or(0));
  }
  SharedBus bus = shared_bus_of(machine_, files_);
  bool ended = false;
  for (SharedEvent event; !ended && bus.next(event); ended = enough && enough()) pass(event, runs);
  std::vector<std::size_t> short_of_end;
  for (std::size_t p = 0; p < sessions_.size(); ++p) {
    if (!ended) runs[p].finish();
    if (!runs[p].is_whole()) short_of_end.push_back(p);
  }
  return short_of_end;
}

}  // namespace citcat
