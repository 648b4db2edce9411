// Interrupts and exceptions: what a processor reads and pushes on its way into their handlers.

#include <cstring>
#include <utility>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kWriteFault = 2;  // of a page fault's error code
constexpr unsigned kDebug = 1, kDoubleFault = 8, kStack = 12, kPageFault = 14;

/// Whether the exception is one that the access to an operand may raise.
bool is_of_operand(unsigned vector) { return vector >= kStack && vector <= kPageFault; }

}  // namespace

/// A REP whose last iteration is done and which the emulator would look at once more, to find its
/// count used up. For a processor it has ended.
bool Recorder::repeat_used_up(const LoggedState& state) const {
  return in_flight_->what.repeated && iterations_ != 0 && is_used_up(state.gpr[1]);
}

/// A delivery that itself faults is followed in the log by another event at the same instruction;
/// it did not happen then.
/// `next`: the instruction that is about to start.
void Recorder::take_new_log(const Insn& next) {
  const bool real_mode = in_flight_ != nullptr && in_real_mode();
  const bool may_have_interrupted =
      real_mode && (next.first_in_block || delivers_itself(in_flight_->what.kind));
  if (!log_.pending() && !may_have_interrupted) return;
  std::vector<LoggedEvent> real;
  LoggedEvent event, following;
  LogItem item = log_.next(event);
  bool fails = false;  // what `event` tells of, and the processor shuts down
  while (item == LogItem::event && active_) {
    item = log_.next(following);
    fails = item == LogItem::shutdown;
    if (fails) break;
    const bool aborted = item == LogItem::event && !following.interrupts() && !following.software &&
                         following.pc == event.pc && following.before.gpr[4] == event.before.gpr[4];
    if (item == LogItem::event && !aborted) refuse_two_traps(event, following);
    if (event.real_mode)
      real.push_back(event);
    else if (active_)
      deliver(event, aborted ? &following : nullptr);
    std::swap(event, following);
  }
  if (!active_) return;
  // What real mode delivered right before these can be known no more: the registers are others.
  if (item == LogItem::system_management)
    give_up(
        "system management mode was entered, which this monitor does not record; leave it out of "
        "the machine with -machine pc,smm=off");
  else if (item == LogItem::shutdown || item == LogItem::reset)
    real.empty() ? take_reset(item, fails ? following : event, fails ? &event : nullptr)
                 : give_up("a reset came right after an interrupt of real mode");
  else if (may_have_interrupted || !real.empty())
    take_real_events(std::move(real), next);
}

/// `second`: the exception that ended this delivery, if one did. What a processor would push of it
/// is noted there.
void Recorder::deliver(const LoggedEvent& event, LoggedEvent* second) {
  const bool at_flight = in_flight_ != nullptr && in_flight_linear_ == event.pc;
  const bool own = (event.software && at_flight) || is_own_trap(event);
  const bool interrupt = event.interrupts();
  const bool exception = !interrupt && !event.software;
  const bool traps = exception && event.vector == kDebug;
  const bool page_fault = exception && event.vector == kPageFault;
  // Before a fault the instruction has not ended, and never does in this attempt. An interrupt or a
  // trap finds it ended, unless it is a REP that is to go on. INT n ends by its delivery.
  const bool used_up = at_flight && (interrupt || traps) && repeat_used_up(event.before);
  const bool to_itself = traps && at_flight && in_flight_->what.branch;
  const bool unfinished = at_flight && !used_up && !to_itself &&
                          (interrupt ? in_flight_->what.repeated : !event.software);
  const bool update_fails = page_fault && at_flight && in_flight_->what.updates_memory;
  const Correction correction{
      used_up ? in_flight_->size : 0u,
      event.error_code | event.processors_bits | (update_fails ? kWriteFault : 0)};
  if (!finish_before(event, unfinished, own)) return;
  set_position();
  segments_.forget(event.real_mode ? SegmentLimits::kCode : SegmentLimits::kEvery);
  if (!traps)
    breakpoints_.abandon();
  else if (!own)
    breakpoints_.raised(event.before.dr[6], (event.before.eflags & kStepping) != 0);

  // The state in the log is newer than ours where the instruction in flight had changed it.
  if (!event.real_mode && event.before.cr0 != walker_.cr0())
    walker_.set_control({event.before.cr0, event.before.cr3, event.before.cr4, event.before.efer},
                        false);
  if (!event.software || second == nullptr) announce(event);
  if (unfinished && exception && in_flight_ != nullptr) {
    if (in_flight_->what.mmx == MmxUse::before_operand && is_of_operand(event.vector))
      tags_.mmx_faulted();
    refuse_wrong_exception(event);
  }
  if (page_fault && at_flight && in_flight_ != nullptr && in_flight_->what.kind == InsnKind::cmps &&
      accesses_ == 0)
    read_first_string(event.before);
  if (page_fault) find_first_page(event, at_flight);
  if (page_fault) walker_.faulting_walk(event.cr2);
  if (!event.real_mode)
    deliver_handler(event, second, correction);
  else if (second == nullptr)
    deliver_real(event, correction.passed_bytes);
  code_segment_.known = false;
  code_segment_.hidden = !in_real_mode();
  if (own && second == nullptr) {
    finish();
  } else if (!own) {
    in_flight_ = nullptr;
    if (second == nullptr) iterations_ = 0;
  }
  next_linear_ = kNowhere;
}

/// Whether ICEBP in flight has raised it: its delivery ends the instruction, as that of INT n does.
bool Recorder::is_own_trap(const LoggedEvent& event) const {
  return in_flight_ != nullptr && in_flight_->what.kind == InsnKind::icebp &&
         event.vector == kDebug && !event.software && !event.interrupts() &&
         narrowed(*in_flight_, in_flight_linear_ + in_flight_->size) == event.pc;
}

/// The instruction in flight ends before the event, unless it has not ended (`unfinished`) or ends
/// by the event itself. False where the recording cannot go on.
bool Recorder::finish_before(const LoggedEvent& event, bool unfinished, bool own) {
  if (in_flight_ != nullptr && !unfinished && !own) finish(&event.before);
  if (!active_) return false;
  if (in_flight_ != nullptr && task_ && task_->old_task.selector != event.before.tr.selector)
    give_up("a task switch faulted in the new task, which this emulator gets wrong");
  return active_;
}

/// What the bus shows of an event as such, which goes into the totals too.
void Recorder::announce(const LoggedEvent& event) {
  if (event.hardware) {
    ++delivered_.interrupts;
    const auto vector = static_cast<std::uint8_t>(event.vector);
    if (several_)
      sink_.local_interrupt(vector, 0);
    else
      sink_.event(RecordType::interrupt_acknowledge, vector, 1);
  } else if (event.nmi()) {
    constexpr std::uint8_t kNmiMode = 4;
    ++delivered_.interrupts;
    if (several_)
      sink_.local_interrupt(2, kNmiMode);
    else
      sink_.event(RecordType::nmi, 0, 0);
  } else {
    ++(event.software ? delivered_.software : delivered_.exceptions);
  }
}

/// The page in front of the one that faults, where the first part of an instruction or operand lies
/// in it. Its walk has been made, and nothing else tells of it: the emulator reports no access, and
/// starts no instruction, that does not come about. An instruction's bytes are shown when it is
/// executed.
void Recorder::find_first_page(const LoggedEvent& event, bool at_flight) {
  constexpr std::uint32_t kLongest = 15;
  const std::uint64_t faulted = walker_.reach(event.cr2);
  const std::uint64_t in_front = walker_.reach(faulted - 1);
  const std::uint64_t before = walker_.behind(faulted, event.pc);
  if ((faulted & 0xfff) != 0) return;
  if (at_flight && in_flight_->what.updates_memory) {
    // The emulator was about to read: it has not marked the page as written.
    const std::uint64_t first = effective_address(*in_flight_, event.before);
    if ((first | 0xfff) == in_front) (void)walker_.translate_own_store(first);
    return;
  }
  const bool is_fetch = !at_flight && before != 0 && before < kLongest;
  if (is_fetch || walker_.was_marked(in_front))
    (void)walker_.translate(in_front, (event.error_code & kWriteFault) != 0);
}

/// A store of which only the monitor tells. Stacks may be unaligned: the part in a second page is
/// where that is. `corrects`: the emulator has stored something else, of which the guest takes
/// notice or not.
void Recorder::write_own(std::uint64_t linear, std::span<const std::uint8_t> bytes,
                         std::optional<Notice> corrects) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), left_in_page(linear)));
    const auto physical = walker_.translate(linear, true);
    if (!physical) return;
    if (corrects) correct_ram(*physical, part, *corrects);
    bus_.write(*physical, part);
    linear += part.size();
    bytes = bytes.subspan(part.size());
  }
}

/// Makes RAM hold these bytes, without a word on the bus.
void Recorder::correct_bytes(std::uint64_t linear, std::span<const std::uint8_t> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n)
    if (const auto at = walker_.locate(linear + n)) correct_ram(*at, bytes.subspan(n, 1));
}

/// Makes RAM hold these bytes of one page; what is elsewhere stays as the emulator has it.
void Recorder::correct_ram(std::uint32_t physical, std::span<const std::uint8_t> bytes,
                           Notice notice) {
  if (memory_.is_ram(physical, static_cast<std::uint32_t>(bytes.size())))
    memory_.correct(physical, bytes, notice);
}

std::uint32_t Recorder::read_linear32(std::uint64_t linear) {
  const std::uint32_t low = read_linear16(linear);
  return low | std::uint32_t{read_linear16(linear + 2)} << 16;
}

std::uint16_t Recorder::read_linear16(std::uint64_t linear) {
  if (left_in_page(linear) == 1)
    return static_cast<std::uint16_t>(read_linear8(linear) | read_linear8(linear + 1) << 8);
  std::uint16_t value = 0;
  const auto physical = walker_.translate(linear, false);
  std::array<std::uint8_t, 2> bytes{};
  if (physical && memory_.is_readable(*physical, 2)) memory_.read(*physical, bytes);
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::uint8_t Recorder::read_linear8(std::uint64_t linear) {
  std::array<std::uint8_t, 1> byte{};
  const auto physical = walker_.translate(linear, false);
  if (physical && memory_.is_readable(*physical, 1)) memory_.read(*physical, byte);
  return byte[0];
}

std::uint64_t Recorder::read_linear64(std::uint64_t linear) {
  const std::uint64_t low = read_linear32(linear);
  return low | std::uint64_t{read_linear32(linear + 4)} << 32;
}

/// On the way into a handler.
std::uint64_t Recorder::read_for_processor(std::uint64_t linear, unsigned size) {
  block_access(linear, size, false);
  return size == 2   ? read_linear16(linear)
         : size == 4 ? read_linear32(linear)
                     : read_linear64(linear);
}

/// What the processor reads and pushes to get into a handler of protected or long mode. The frame
/// is in RAM already.
void Recorder::deliver_handler(const LoggedEvent& event, LoggedEvent* second,
                               const Correction& correction) {
  note_task_base(event.before);
  WayIn way(*this, event, walker_.long_mode(),
            event.before.code64 ? event.before.tr.base : task_base_.whole);
  const auto refusal = way.go();
  if (!refusal && way.is_task_gate()) {
    give_up("a task gate was used, which this monitor does not record");
  } else if (second != nullptr) {
    end_by_second(event, way, *second, refusal, correction);
  } else if (refusal) {
    refuse_wrong_delivery(event, *refusal);
  } else {
    refuse_wrong_gate(way);
    push_frame(event, way, correction);
    mark_accessed(way.code.linear);
    if (way.stack) mark_accessed(way.stack->linear);
  }
}

/// A delivery that a second exception ended: where nothing refused it on its way, a push did.
void Recorder::end_by_second(const LoggedEvent& event, const WayIn& way, LoggedEvent& second,
                             const std::optional<Refusal>& refusal, const Correction& correction) {
  const bool exception = !event.interrupts() && !event.software;
  const bool of_page =
      second.vector == kPageFault || (second.vector == kDoubleFault && event.vector == kPageFault);
  if (!refusal) {
    const std::uint64_t faulting = second.vector == kPageFault ? second.cr2 : second.before.cr2;
    if (!of_page) return refuse_wrong_delivery(event, {kStack, 0});
    push_frame(event, way, correction, faulting);
    if (second.vector == kDoubleFault) walker_.faulting_walk(faulting);
    return;
  }
  if (exception && event.vector == kDoubleFault) return;  // the processor shuts down
  constexpr std::uint32_t kExternal = 1;
  const Refusal expected = exception ? combined(event.vector, *refusal) : *refusal;
  if (second.vector != expected.vector ||
      (second.error_code | kExternal) != (expected.error_code | kExternal))
    return refuse_wrong_delivery(event, *refusal);
  // The emulator does not say that it was not the program's doing.
  second.processors_bits = expected.error_code & kExternal;
}

/// Pushes the frame from the top on. `faulting`: an address in the page that refuses a part of it,
/// where it ends. It is shown as a processor has it: RF is pushed as it is, while the emulator sets
/// it for interrupts, as for faults, and after a REP (Intel SDM vol. 3, 17.3.1.1).
void Recorder::push_frame(const LoggedEvent& event, const WayIn& way, const Correction& correction,
                          std::optional<std::uint64_t> faulting) {
  const LoggedState& state = event.before;
  const bool wide = walker_.long_mode();
  const unsigned bytes = wide ? 8 : way.is_wide() ? 4 : 2;
  const bool virtual8086 = (state.eflags & kVirtual8086) != 0;
  const unsigned flags_push = wide || (way.inner && !virtual8086) ? 2 : way.inner ? 6 : 0;
  const bool has_code = !event.interrupts() && !event.software && pushes_error_code(event.vector);
  const unsigned pushes = flags_push + (has_code ? 4 : 3);
  // RF ends with the first instruction after the return that loaded it, in the emulator with its
  // block.
  const bool ended_resume =
      correction.passed_bytes != 0 || ((event.software || is_own_trap(event)) &&
                                       in_flight_ != nullptr && !in_flight_->first_in_block);
  const bool is_fault = !event.interrupts() && !event.software && !is_own_trap(event);
  const bool no_resume = ended_resume || (breakpoints_.leaves_resume_out(completed_) && !is_fault);
  const std::uint64_t code_base = state.code64 ? 0 : state.segment[1].base;
  const auto own_flags =
      bytes_of(std::uint64_t{no_resume ? state.eflags & ~kResume : state.eflags});
  const std::uint64_t next = event.pc - code_base + correction.passed_bytes;
  const auto behind = bytes_of(state.code64 ? next : static_cast<std::uint32_t>(next));
  const auto error_code = bytes_of(std::uint64_t{correction.error_code});

  std::uint64_t top = way.top;
  expect_stores(way.stack_base + ((top - pushes * bytes) & way.mask), pushes * bytes);
  for (unsigned n = 0; n < pushes; ++n) {
    top = (top - bytes) & way.mask;
    const std::uint64_t at = way.stack_base + top;
    const auto is_in_page = [&](std::uint64_t linear) {
      return faulting && walker_.reach(linear) >> 12 == walker_.reach(*faulting) >> 12;
    };
    if (is_in_page(at) || is_in_page(at + bytes - 1)) break;
    if (n == flags_push && (event.interrupts() || no_resume))
      write_own(at, std::span(own_flags).first(bytes), Notice::of_resume);
    else if (n == flags_push + 2 && correction.passed_bytes != 0)
      write_own(at, std::span(behind).first(bytes), Notice::taken);
    else if (n == flags_push + 3 && correction.error_code != event.error_code)
      write_own(at, std::span(error_code).first(bytes), Notice::taken);
    else
      block_access(at, bytes, true);
  }
  bus_.expect_writes({}, {});
}

}  // namespace citcat::monitor
