#include "replay/infer/registers/recovery_trial.h"

#include <algorithm>
#include <cstring>

#include "replay/machine/code_place.h"

namespace citcat {
namespace {

constexpr std::uint8_t kUndefinedCode = 6, kPageFault = 14;

/// Reads what a handler saves off the bus, and follows what the last instruction did.
class SaveReader final : public Observer {
 public:
  /// `saves` hears of the run by this. What `check` has found must not be judged yet.
  SaveReader(HandlerSaves& saves, const BusOrderCheck& check) : saves_(saves), check_(check) {}

  Interest interest() const override { return saves_.interest(); }
  void watch(const Machine& machine) override {
    machine_ = &machine;
    saves_.watch(machine);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    saves_.write(a, bytes, kind, now);
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    saves_.instruction(e, now);
    for (; taken_ < saves_.saves().size(); ++taken_) take(saves_.saves()[taken_]);
    // A fault that the bus does not show ends the run only after its handler's first instruction.
    if ((page_fault_ || undefined_) && check_.difference()) return;
    addresses_.assign(e.ea, e.ea + std::min<std::size_t>(e.ea_count, 2));
    page_fault_.reset();
    undefined_ = false;
    note_fpu(e);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    saves_.delivered(event, now);
    if (event.kind == DeliveredEvent::Kind::exception && event.vector == kPageFault &&
        !page_fault_) {
      page_fault_ = LinearAddr{event.cr2};
    }
    undefined_ |= event.kind == DeliveredEvent::Kind::exception && event.vector == kUndefinedCode;
  }

  const std::vector<Saved>& saved() const { return saved_; }
  /// The floating-point state that was stored first.
  const std::optional<SavedFx>& fx() const { return fx_; }
  /// The one that was stored last, if it is what differs.
  const std::optional<DifferentFx>& different_fx() const { return different_fx_; }
  /// What the replay accessed last, as far as it is known.
  std::vector<LinearAddr> addresses() const {
    if (page_fault_) return {*page_fault_};
    return addresses_;
  }
  /// Since the last complete instruction the replay faulted here.
  std::optional<LinearAddr> page_fault() const { return page_fault_; }
  /// The same of an instruction that was #UD.
  bool undefined() const { return undefined_; }

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
  void note_fpu(const ExecutedInstruction& e) {
    const DecodedInstruction& info = *e.info;
    const bool is_xsave = info.kind == InstructionClass::xsave;
    if ((is_xsave || info.kind == InstructionClass::fxsave) && e.ea_count != 0) {
      DifferentFx stored = stored_image(e.ea[0]);
      stored.may_leave_out = is_xsave && !info.is(Operation::xsave);
      if (check_.difference()) different_fx_ = stored;
      if (!fx_ && stored.stored[kMxcsrMask]) take_image(stored, is_xsave);
    }
    fpu_untouched_ &= info.kind < InstructionClass::x87;
  }
  /// An area of XSAVE begins with such an image. It is smaller than a page: the offset in it tells
  /// where in the image a byte is.
  DifferentFx stored_image(LinearAddr area) const {
    DifferentFx image;
    for (const BusOrderCheck::Byte& b : check_.written()) {
      const std::uint32_t at = (b.address.offset_in_page() - area.offset_in_page()) & kPageMask;
      if (at >= kFxBytes || !machine_->memory().is_mapped(b.address.page())) continue;
      if (image.stored.none()) image.transaction = b.transaction;
      image.stored[at] = true;
      image.shown[at] = b.value;
      image.replayed[at] = *machine_->memory().host(b.address);
    }
    return image;
  }
  /// XSAVE that stores x87 and SSE state names those of them that are in use; XSAVEOPT leaves out
  /// others, which are as FNINIT makes them, or zero (SDM vol. 1, 13.6 and 13.9).
  void take_image(const DifferentFx& stored, bool is_xsave) {
    constexpr std::uint32_t kBoth = 3, kControl = 0x37f;
    const bool asks_for_all =
        !is_xsave || (static_cast<std::uint32_t>(machine_->engine().gpr(kEax)) & kBoth) == kBoth;
    fx_.emplace(SavedFx{stored.shown, fpu_untouched_ && asks_for_all, stored.transaction});
    if (!stored.stored[0]) std::memcpy(fx_->image.data(), &kControl, 2);
  }

  HandlerSaves& saves_;
  const BusOrderCheck& check_;
  const Machine* machine_ = nullptr;
  std::size_t taken_ = 0;
  std::vector<Saved> saved_;
  std::vector<LinearAddr> addresses_;
  std::optional<LinearAddr> page_fault_;
  bool undefined_ = false, fpu_untouched_ = true;
  std::optional<SavedFx> fx_;
  std::optional<DifferentFx> different_fx_;
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
  GuessedReplay replay(recording, evidence, check, {.observers = {&reader}, .time = trial.time});
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
  outcome.different_fx = reader.different_fx();
  outcome.addresses = reader.addresses();
  outcome.shown = check.next_accesses();
  outcome.page_fault = reader.page_fault();
  outcome.undefined = reader.undefined();
  outcome.cr3 = machine.engine().wide().cr(3);
  if (!outcome.ok() && machine.engine().cr(0) >> 31 != 0) {
    const auto read = [&](PhysAddr at) -> std::optional<std::uint32_t> {
      if (!memory.is_mapped(at.page())) return std::nullopt;
      std::uint32_t value = 0;
      std::memcpy(&value, memory.host(at), 4);
      return value;
    };
    const PageTables tables = in_long_mode(machine.engine()) ? kFourLevels : kTwoLevels;
    outcome.pages = PageMap(tables, outcome.cr3, read);
  }
  return outcome;
}

}  // namespace citcat
