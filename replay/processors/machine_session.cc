#include "replay/processors/machine_session.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

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
bool is_own_chip(PhysAddr a) {
  constexpr std::uint32_t kLocalApic = 0xfee00000, kLocalApicBytes = 0x1000;
  return a.is_within32(PhysAddr{kLocalApic}, kLocalApicBytes);
}

}  // namespace

/// Tells what one processor does, when it is known what instruction it belongs to.
class MachineSession::Teller final : public Observer {
 public:
  Teller(std::uint8_t processor, std::uint32_t line_bytes, MachineListener& listener)
      : processor_(processor), line_bytes_(line_bytes), listener_(listener) {}
  Interest interest() const override { return Interest::everything(); }

  void watch(const Machine& machine) override { machine_ = &machine; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    keep(a, size, false, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    constexpr PhysAddr kCommand{0xfee00300};
    if (a == kCommand && !bytes.empty()) {
      sends_ = true;
      put({.kind = Told::Kind::message, .vector = bytes[0]});
    }
    keep(a, static_cast<std::uint32_t>(bytes.size()), true, kind, now);
  }
  void instruction(const ExecutedInstruction& e, Position) override {
    settle(e.linear, !kept_.empty() && locks(*e.info));
    if (e.info->kind == InstructionClass::call) put({.kind = Told::Kind::call, .from = e.linear});
    if (e.info->kind == InstructionClass::ret) put({.kind = Told::Kind::ret});
  }
  /// Accesses of the delivery itself are reported with the first instruction of its handler.
  void delivered(const DeliveredEvent& event, Position) override {
    // They belong to an instruction that begins anew, or to a delivery that fails.
    settle(code_address(machine_->engine()), false);
    if (event.kind == DeliveredEvent::Kind::external || event.kind == DeliveredEvent::Kind::nmi)
      put({.kind = Told::Kind::interrupt, .vector = event.vector});
  }

  bool holds() const { return !held_.empty(); }
  /// Tells what is held. Holds what begins with a store to `line`, or a locked access; and, if the
  /// run goes `ahead` of the bus, with an interrupt.
  void release(std::optional<PhysAddr> line, bool ahead) {
    barrier_ = line;
    ahead_ = ahead;
    const std::vector<Told> held = std::exchange(held_, {});
    for (const Told& told : held) put(told);
  }
  /// An interrupt or exception has been delivered, and its handler has not begun: tells what that
  /// accessed. False where there is nothing to tell.
  bool flush() {
    if (kept_.empty()) return false;
    settle(code_address(machine_->engine()), false);
    return true;
  }
  /// It writes the command register of its APIC where the replay sees that.
  bool sends() const { return sends_; }

 private:
  struct Told {
    enum class Kind : std::uint8_t { access, call, ret, interrupt, message };
    Kind kind = Kind::access;
    std::uint8_t vector = 0;
    LinearAddr from{};
    ProcessorAccess access{};
  };

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
    if (ahead_ && told.kind == Told::Kind::interrupt) return true;
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
        return listener_.interrupted(processor_, told.vector);
      case Told::Kind::message:
        return listener_.message(processor_, told.vector);
    }
  }

  std::uint8_t processor_;
  std::uint32_t line_bytes_;
  MachineListener& listener_;
  const Machine* machine_ = nullptr;
  std::vector<ProcessorAccess> kept_;  ///< of an instruction that is not over
  std::optional<PhysAddr> barrier_;
  bool ahead_ = false;
  std::vector<Told> held_;
  bool sends_ = false;
};

/// One processor on its way.
class MachineSession::Run {
 public:
  Run(ReplaySession& session, Teller& teller, std::deque<BusNote> taken)
      : session_(session), teller_(teller), taken_(std::move(taken)) {}

  bool diverged() const { return diverged_; }
  /// The bus shows it there.
  void show(const SharedEvent& event) {
    const BusTransaction& t = event.t;
    // Accesses to its own chip have no clock of their own.
    if (is_own_chip(t.address) && t.has(kUncacheable)) return go_ahead(event);
    // An interrupt comes before what it counts to, and so does the write-back of a line that
    // another one asks for. All else is of that instruction, or iteration, which is over with the
    // last of its transactions: another one may write back a line in between.
    const bool before = t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi || t.has(kSnoop);
    const bool over = !before && (!event.next || event.next->position != t.position);
    teller_.release(std::nullopt, false);
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
  /// To the end.
  void finish(std::uint64_t end) {
    teller_.release(std::nullopt, false);
    go_to({end, 0});
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
    if (!next_ || next_->clock <= event.t.clock) return;
    is_within_ = false;
    go_ahead();
  }
  /// Within its cache, up to its next transaction, or to the store for which it takes a line.
  void go_ahead() {
    if (!next_) return teller_.release(std::nullopt, false);
    const bool takes = !taken_.empty() && taken_.front().clock <= next_->clock;
    teller_.release(takes ? std::optional(taken_.front().address) : std::nullopt, true);
    while (!ended_ && reached_ < next_->position && !teller_.holds()) {
      // Not far beyond the store: what is held takes memory.
      constexpr std::uint64_t kStep = 4096;
      const Position step{reached_.instruction + kStep, 0};
      go_to(takes ? std::min(next_->position, step) : next_->position);
    }
  }

  ReplaySession& session_;
  Teller& teller_;
  std::deque<BusNote> taken_;  ///< lines that it is still to take
  Position reached_;
  std::optional<SharedEvent::Next> next_;
  bool is_within_ = false;  ///< an instruction, or iteration, or delivery
  bool ended_ = false, diverged_ = false;
};

MachineSession::MachineSession(const MachineFile& machine, MachineListener& listener,
                               const std::optional<ComparisonPolicy>& policy)
    : machine_(machine), listener_(listener), files_(open_processors(machine)) {
  const std::uint32_t line_bytes = shared_line_bytes(files_.front().recording());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    tellers_.push_back(
        std::make_unique<Teller>(static_cast<std::uint8_t>(i), line_bytes, listener));
    SessionOptions options;
    options.check = policy.has_value();
    if (policy) options.policy = *policy;
    sessions_.push_back(
        std::make_unique<ReplaySession>(files_[i], tellers_.back().get(), std::move(options)));
  }
}

MachineSession::~MachineSession() = default;

std::vector<std::size_t> MachineSession::run() {
  std::vector<std::deque<BusNote>> taken(files_.size());
  for (const BusNote& note : machine_.notes()) {
    const bool takes = note.kind == BusNote::Kind::invalidate && note.processor < taken.size();
    if (takes) taken[note.processor].push_back(note);
  }
  std::vector<Run> runs;
  for (std::size_t p = 0; p < files_.size(); ++p)
    runs.emplace_back(*sessions_[p], *tellers_[p], std::move(taken[p]));
  SharedBus bus = shared_bus_of(machine_, files_);
  for (SharedEvent event; bus.next(event);) {
    if (!event.note) {
      if (!event.t.has(kPositionKnown)) continue;
      clock_ = event.t.clock;
      const bool is_asked_for = event.t.has(kSnoop);
      for (std::size_t p = 0; p < runs.size() && !is_asked_for; ++p)
        if (p != event.processor) runs[p].leave();
      runs[event.processor].show(event);
      continue;
    }
    clock_ = event.note->clock;
    const bool known = event.processor < runs.size();
    if (event.note->kind == BusNote::Kind::invalidate && known) runs[event.processor].take_line();
    if (event.note->kind != BusNote::Kind::message) continue;
    // Where the replay shows the command, it is told when it is given.
    if (known && tellers_[event.processor]->sends()) continue;
    listener_.message(event.processor, static_cast<std::uint8_t>(event.note->data));
  }
  std::vector<std::size_t> short_of_end;
  for (std::size_t p = 0; p < sessions_.size(); ++p) {
    const std::uint64_t end = files_[p].recording().instructions.value_or(0);
    runs[p].finish(end);
    const bool whole = sessions_[p]->position().instruction >= end || !runs[p].diverged();
    if (!whole) short_of_end.push_back(p);
  }
  return short_of_end;
}

}  // namespace citcat
