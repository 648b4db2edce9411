#include "replay/processors/machine_session.h"

#include <algorithm>
#include <array>

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

}  // namespace

/// Tells the accesses of one processor, when it is known what instruction made them.
class MachineSession::Teller final : public Observer {
 public:
  Teller(std::uint8_t processor, MachineListener& listener)
      : processor_(processor), listener_(listener) {}
  Interest interest() const override { return Interest::everything(); }

  void watch(const Machine& machine) override { machine_ = &machine; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    keep(a, size, false, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    keep(a, static_cast<std::uint32_t>(bytes.size()), true, kind, now);
  }
  void instruction(const ExecutedInstruction& e, Position) override {
    tell(e.linear, !kept_.empty() && locks(*e.info));
    if (e.info->kind == InstructionClass::call) listener_.called(processor_, e.linear);
    if (e.info->kind == InstructionClass::ret) listener_.returned(processor_);
  }
  /// What the delivery itself accesses is told with the first instruction of its handler.
  void delivered(const DeliveredEvent& event, Position) override {
    // Of an instruction that begins anew, or of a delivery that fails.
    tell(code_address(machine_->engine()), false);
    if (event.kind == DeliveredEvent::Kind::external || event.kind == DeliveredEvent::Kind::nmi)
      listener_.interrupted(processor_, event.vector);
  }

 private:
  void keep(PhysAddr a, std::uint32_t size, bool write, AccessKind kind, Position now) {
    // The registers of its APIC are on the processor's own chip, at the address of all others'.
    constexpr std::uint32_t kLocalApic = 0xfee00000, kLocalApicBytes = 0x1000;
    if (a.is_within32(PhysAddr{kLocalApic}, kLocalApicBytes)) return;
    ProcessorAccess access;
    access.processor = processor_;
    access.kind = kind;
    access.write = write;
    access.size = static_cast<std::uint16_t>(size);
    access.address = a;
    access.position = now;
    kept_.push_back(access);
  }

  void tell(LinearAddr instruction, bool locked) {
    for (ProcessorAccess& access : kept_) {
      access.locked = locked && access.kind == AccessKind::data;
      access.instruction = instruction;
      listener_.access(access);
    }
    kept_.clear();
  }

  const Machine* machine_ = nullptr;
  std::uint8_t processor_;
  MachineListener& listener_;
  std::vector<ProcessorAccess> kept_;
};

MachineSession::MachineSession(const MachineFile& machine, MachineListener& listener,
                               const std::optional<ComparisonPolicy>& policy)
    : machine_(machine), listener_(listener), files_(open_processors(machine)) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    tellers_.push_back(std::make_unique<Teller>(static_cast<std::uint8_t>(i), listener));
    SessionOptions options;
    options.check = policy.has_value();
    if (policy) options.policy = *policy;
    sessions_.push_back(
        std::make_unique<ReplaySession>(files_[i], tellers_.back().get(), std::move(options)));
  }
}

MachineSession::~MachineSession() = default;

std::vector<std::size_t> MachineSession::run() {
  SharedBus bus = shared_bus_of(machine_, files_);
  std::vector<Position> reached(sessions_.size());
  std::vector<bool> ended(sessions_.size());
  const auto go_to = [&](std::size_t p, Position to) {
    if (ended[p] || to <= reached[p]) return;
    reached[p] = to;
    ended[p] = sessions_[p]->run_to(to).end == ReplayReport::End::diverged;
  };
  for (SharedEvent event; bus.next(event);) {
    if (event.note) {
      clock_ = event.note->clock;
      if (event.note->kind == BusNote::Kind::message)
        listener_.message(event.processor, static_cast<std::uint8_t>(event.note->data));
      continue;
    }
    const BusTransaction& t = event.t;
    if (!t.has(kPositionKnown)) continue;
    clock_ = t.clock;
    // An interrupt comes before what it counts to; all else is of that instruction, or iteration.
    const bool before = t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi;
    go_to(event.processor, {t.position.instruction, t.position.iteration + (before ? 0 : 1)});
  }
  std::vector<std::size_t> short_of_end;
  for (std::size_t p = 0; p < sessions_.size(); ++p) {
    const std::uint64_t end = files_[p].recording().instructions.value_or(0);
    go_to(p, {end, 0});
    if (ended[p] || sessions_[p]->position().instruction < end) short_of_end.push_back(p);
  }
  return short_of_end;
}

}  // namespace citcat
