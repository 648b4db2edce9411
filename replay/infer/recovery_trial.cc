#include "replay/infer/recovery_trial.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/machine/code_place.h"

namespace citcat {
namespace {

constexpr std::uint8_t kPageFaultVector = 14;

/// Reads what a handler saves off the bus, and follows what the last instruction did.
class SaveReader final : public Observer {
 public:
  /// `saves` hears of the run by this. What `check` has found must not be judged yet.
  SaveReader(HandlerSaves& saves, const BusOrderCheck& check) : saves_(saves), check_(check) {}

  Wants wants() const override { return saves_.wants(); }
  void watch(const Machine& machine) override { saves_.watch(machine); }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    saves_.write(a, bytes, kind, now);
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    saves_.instruction(e, now);
    for (; taken_ < saves_.saves().size(); ++taken_) take(saves_.saves()[taken_]);
    // A fault that the bus does not show ends the run only after its handler's first instruction.
    if (page_fault_ && check_.difference()) return;
    addresses_.assign(e.ea, e.ea + std::min<std::size_t>(e.ea_count, 2));
    page_fault_.reset();
    note_fpu(*e.info);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    saves_.delivered(event, now);
    if (event.kind == DeliveredEvent::Kind::exception && event.vector == kPageFaultVector &&
        !page_fault_) {
      page_fault_ = LinearAddr{event.cr2};
    }
  }

  const std::vector<Saved>& saved() const { return saved_; }
  /// The floating-point state that was stored first.
  const std::optional<SavedFx>& fx() const { return fx_; }
  /// What the replay accessed last, as far as it is known.
  std::vector<LinearAddr> addresses() const {
    if (page_fault_) return {*page_fault_};
    return addresses_;
  }
  /// Since the last complete instruction the replay faulted here.
  std::optional<LinearAddr> page_fault() const { return page_fault_; }

 private:
  void take(const SavedRegister& where) {
    Saved saved{where, 0, 0};
    unsigned bytes = 0;
    for (const BusOrderCheck::Byte& b : check_.written()) {
      const std::uint32_t at = b.address.minus32(where.address);
      if (at >= where.size) continue;
      saved.value |= std::uint64_t{b.value} << (8 * at);
      saved.transaction = b.transaction;
      ++bytes;
    }
    if (bytes == where.size) saved_.push_back(saved);
  }
  void note_fpu(const DecodedInstruction& info) {
    const std::vector<BusOrderCheck::Byte>& bytes = check_.written();
    if (info.kind == InstructionClass::fxsave && !fx_ && bytes.size() > kMxcsrMask + 4) {
      fx_.emplace();
      fx_->whole = fpu_untouched_;
      fx_->transaction = bytes.front().transaction;
      const std::size_t count = std::min(bytes.size(), fx_->image.size());
      for (std::size_t i = 0; i < count; ++i) fx_->image[i] = bytes[i].value;
    }
    fpu_untouched_ &= info.kind < InstructionClass::x87;
  }

  HandlerSaves& saves_;
  const BusOrderCheck& check_;
  std::size_t taken_ = 0;
  std::vector<Saved> saved_;
  std::vector<LinearAddr> addresses_;
  std::optional<LinearAddr> page_fault_;
  bool fpu_untouched_ = true;
  std::optional<SavedFx> fx_;
};

}  // namespace

RecoveryOutcome run_trial(const Recording& recording, const EvidenceSource& evidence,
                          const RecoveryTrial& trial) {
  RecoveryOutcome outcome;
  if (is_spent(trial.time)) {
    static_cast<RecoveryProgress&>(outcome) = no_progress(*trial.time);
    return outcome;
  }
  BusOrderCheck check(evidence(), placed_interrupts(recording));
  check.complete_instructions();
  HandlerSaves saves;
  saves.follow_branches(trial.keeps_stack);
  saves.begin();
  SaveReader reader(saves, check);
  GuessedReplay replay(recording, evidence, check,
                       {.observers = {&reader}, .time = trial.time});
  Machine& machine = replay.machine();
  Memory& memory = machine.memory();
  if (!trial.strict) replay.define_memory(recording.initial.ram_bytes);
  if (trial.entry) {
    const auto bytes = trial.entry->data();
    memory.external_write(trial.entry->at, std::span(bytes).first(trial.entry->bytes));
  }
  static_cast<RecoveryProgress&>(outcome) = replay.run();
  if (has_ended(trial.time)) return outcome;
  // Beyond the end of the capture anything may be missing.
  const bool at_end = outcome.stopped && !outcome.difference && check.exhausted();
  if (at_end) outcome.stopped.reset();
  outcome.last_agreed = check.last_agreed();
  outcome.saved = reader.saved();
  outcome.fx = reader.fx();
  outcome.addresses = reader.addresses();
  outcome.shown = check.next_accesses();
  outcome.page_fault = reader.page_fault();
  outcome.cr3 = machine.engine().cr(3);
  if (!outcome.ok() && machine.engine().cr(0) >> 31 != 0) {
    const auto read = [&](PhysAddr at) -> std::optional<std::uint32_t> {
      if (!memory.is_mapped(at.page())) return std::nullopt;
      std::uint32_t value = 0;
      std::memcpy(&value, memory.host(at), 4);
      return value;
    };
    const PageTables tables =
        (in_long_mode(machine.engine()) ? kFourLevels : kTwoLevels).of(machine.bus());
    outcome.pages = PageMap(tables, outcome.cr3, read);
  }
  return outcome;
}

}  // namespace citcat
