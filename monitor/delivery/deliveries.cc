#include "monitor/delivery/deliveries.h"

#include <utility>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kWriteFault = 2;  // of a page fault's error code

/// Whether the exception is one that the access to an operand may raise.
bool is_of_operand(unsigned vector) { return vector >= kStackFault && vector <= kPageFault; }

}  // namespace

void Deliveries::deliver(const LoggedEvent& event, LoggedEvent* second) {
  const bool at_flight = flight_.insn != nullptr && flight_.linear == event.pc;
  const bool own = (event.software && at_flight) || is_own_trap(event);
  const bool interrupt = event.interrupts();
  const bool exception = !interrupt && !event.software;
  const bool traps = exception && event.vector == kDebug;
  const bool page_fault = exception && event.vector == kPageFault;
  // Before a fault the instruction has not ended, and never does in this attempt. An interrupt or a
  // trap finds it ended, unless it is a REP that is to go on. INT n ends by its delivery.
  const bool used_up = at_flight && (interrupt || traps) && flight_.repeat_used_up(event.before);
  const bool to_itself = traps && at_flight && flight_.insn->what.branch;
  const bool unfinished = at_flight && !used_up && !to_itself &&
                          (interrupt ? flight_.insn->what.repeated : !event.software);
  const bool update_fails = page_fault && at_flight && flight_.insn->what.updates_memory;
  const Correction correction{
      used_up ? flight_.insn->size : 0u,
      event.error_code | event.processors_bits | (update_fails ? kWriteFault : 0)};
  // MOV to SS and POP SS put off every #DB behind the next instruction, or suppress it (Intel SDM
  // vol. 3, 6.8.3). The emulator does so for single steps alone.
  if (traps && !unfinished && flight_.insn != nullptr && flight_.insn->loads_stack_segment())
    return seen_.recording.give_up(
        "a breakpoint was reported right behind a load of SS, where processors report none");
  if (!finish_before(event, unfinished, own)) return;
  seen_.recording.set_position();
  cpu_.segments.forget(event.real_mode ? SegmentLimits::kCode : SegmentLimits::kEvery);
  if (!traps)
    cpu_.breakpoints.abandon();
  else if (!own)
    cpu_.breakpoints.raised(event.before.dr[6], (event.before.eflags & kStepping) != 0);

  take_control(event);
  if (!event.software || second == nullptr) announce(event);
  if (unfinished && exception && flight_.insn != nullptr) note_fault(event);
  if (page_fault && at_flight && flight_.insn != nullptr &&
      flight_.insn->what.kind == InsnKind::cmps && flight_.accesses == 0)
    accesses_.read_first_string(event.before);
  if (page_fault) find_first_page(event, at_flight);
  if (page_fault) cpu_.walker.faulting_walk(event.cr2);
  if (!event.real_mode)
    entry_.deliver(event, second, correction, own);
  else if (second == nullptr)
    real_frames_.push(event, correction.passed_bytes);
  seen_.code.forget_segment(!cpu_.in_real_mode());
  if (own && second == nullptr) {
    execution_.finish();
  } else if (!own) {
    flight_.insn = nullptr;
    if (second == nullptr) flight_.iterations = 0;
  }
  seen_.code.jump();
}

/// Whether ICEBP in flight has raised it: its delivery ends the instruction, as that of INT n does.
bool Deliveries::is_own_trap(const LoggedEvent& event) const {
  return flight_.insn != nullptr && flight_.insn->what.kind == InsnKind::icebp &&
         event.vector == kDebug && !event.software && !event.interrupts() &&
         flight_.insn->narrowed(flight_.linear + flight_.insn->size) == event.pc;
}

/// The instruction in flight ends before the event, unless it has not ended (`unfinished`) or ends
/// by the event itself. False where the recording cannot go on.
bool Deliveries::finish_before(const LoggedEvent& event, bool unfinished, bool own) {
  Recording& recording = seen_.recording;
  if (flight_.insn != nullptr && !unfinished && !own) execution_.finish(&event.before);
  if (!recording.active()) return false;
  if (flight_.insn != nullptr && units_.far_transfer.has_left_task(event.before.tr.selector))
    recording.give_up("a task switch faulted in the new task, which this emulator gets wrong");
  return recording.active();
}

/// The state in the log is newer than ours where the instruction in flight had changed it.
void Deliveries::take_control(const LoggedEvent& event) {
  const LoggedState& state = event.before;
  if (!event.real_mode && state.cr0 != cpu_.walker.cr0())
    cpu_.walker.set_control({state.cr0, state.cr3, state.cr4, state.efer}, false);
}

/// What the bus shows of an event as such, which goes into the totals too.
void Deliveries::announce(const LoggedEvent& event) {
  Recording& recording = seen_.recording;
  if (event.hardware) {
    recording.count(Recording::Delivered::interrupt);
    const auto vector = static_cast<std::uint8_t>(event.vector);
    if (cpu_.several)
      cpu_.sink.local_interrupt(vector, 0);
    else
      cpu_.sink.event(RecordType::interrupt_acknowledge, vector, 1);
  } else if (event.nmi()) {
    constexpr std::uint8_t kNmiMode = 4;
    recording.count(Recording::Delivered::interrupt);
    if (cpu_.several)
      cpu_.sink.local_interrupt(kNmi, kNmiMode);
    else
      cpu_.sink.event(RecordType::nmi, 0, 0);
  } else {
    recording.count(event.software ? Recording::Delivered::software
                                   : Recording::Delivered::exception);
  }
}

/// The instruction in flight has raised it.
void Deliveries::note_fault(const LoggedEvent& event) {
  const InsnClass& what = flight_.insn->what;
  if (what.mmx == MmxUse::before_operand && is_of_operand(event.vector)) units_.x87.mmx_faulted();
  if (event.vector == kInvalidOpcode)
    if (const char* const unknown = flight_.insn->details().unknown)
      return seen_.recording.give_up(unknown);
  units_.far_transfer.refuse_wrong_exception(event);
}

/// The page in front of the one that faults, where the first part of an instruction or operand lies
/// in it. Its walk has been made, and nothing else tells of it: the emulator reports no access, and
/// starts no instruction, that does not come about. An instruction's bytes are shown when it is
/// executed.
void Deliveries::find_first_page(const LoggedEvent& event, bool at_flight) {
  constexpr std::uint32_t kLongest = 15;
  PageWalker& walker = cpu_.walker;
  const std::uint64_t faulted = walker.reach(event.cr2);
  const std::uint64_t in_front = walker.reach(faulted - 1);
  const std::uint64_t before = walker.behind(faulted, event.pc);
  if ((faulted & 0xfff) != 0) return;
  if (at_flight && flight_.insn->what.updates_memory) {
    // The emulator was about to read: it has not marked the page as written.
    const std::uint64_t first = seen_.code.effective_address(*flight_.insn, event.before);
    if ((first | 0xfff) == in_front) (void)walker.translate_own_store(first);
    return;
  }
  const bool is_fetch = !at_flight && before != 0 && before < kLongest;
  if (is_fetch || walker.was_marked(in_front))
    (void)walker.translate(in_front, (event.error_code & kWriteFault) != 0);
}

void Deliveries::deliver_real(std::vector<LoggedEvent> events, const Insn& next) {
  if (next.first_in_block && real_frames_.nmi_taken(events)) {
    events.emplace_back().vector = kNmi;
    events.back().real_mode = true;
  }
  std::size_t frames = events.size();
  if (const auto own = real_frames_.of_software(frames)) deliver(*own);
  for (LoggedEvent& event : events) {
    real_frames_.complete(event, static_cast<unsigned>(--frames));
    deliver(event);
  }
  if (next.first_in_block && events.empty()) real_frames_.refuse_unexplained();
}

}  // namespace citcat::monitor
