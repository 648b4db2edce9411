#include "monitor/delivery/handler_entry.h"

#include <cstdio>
#include <span>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {
namespace {

/// "interrupt 22h" as text would be too long for some callers' sentences: the name of an exception.
const char* name_of(unsigned vector) {
  switch (vector) {
    case kDoubleFault:
      return "#DF";
    case kTaskSegment:
      return "#TS";
    case kNotPresent:
      return "#NP";
    case kStackFault:
      return "#SS";
    case kProtection:
      return "#GP";
    case kPageFault:
      return "#PF";
    default:
      return "another exception";
  }
}

}  // namespace

std::uint64_t HandlerEntry::read_for_processor(std::uint64_t linear, unsigned size) {
  seen_.linear.show(linear, size, false);
  return size == 2   ? seen_.linear.read16(linear)
         : size == 4 ? seen_.linear.read32(linear)
                     : seen_.linear.read64(linear);
}

void HandlerEntry::deliver(const LoggedEvent& event, LoggedEvent* second,
                           const Correction& correction, bool own) {
  units_.task_register.note(event.before);
  WayIn way(*this, event, cpu_.walker.long_mode(),
            event.before.code64 ? event.before.tr.base : units_.task_register.base());
  const auto refusal = way.go();
  if (!refusal && way.is_task_gate()) {
    seen_.recording.give_up("a task gate was used, which this monitor does not record");
  } else if (second != nullptr) {
    end_by_second(event, way, *second, refusal, correction, own);
  } else if (refusal) {
    refuse_wrong_delivery(event, *refusal);
  } else {
    refuse_wrong_gate(way);
    push_frame(event, way, correction, own, {});
    seen_.tables.mark_accessed(way.code.linear);
    if (way.stack) seen_.tables.mark_accessed(way.stack->linear);
  }
}

/// A delivery that a second exception ended: where nothing refused it on its way, a push did.
void HandlerEntry::end_by_second(const LoggedEvent& event, const WayIn& way, LoggedEvent& second,
                                 const std::optional<Refusal>& refusal,
                                 const Correction& correction, bool own) {
  const bool exception = !event.interrupts() && !event.software;
  const bool of_page =
      second.vector == kPageFault || (second.vector == kDoubleFault && event.vector == kPageFault);
  if (!refusal) {
    const std::uint64_t faulting = second.vector == kPageFault ? second.cr2 : second.before.cr2;
    if (!of_page) return refuse_wrong_delivery(event, {kStackFault, 0});
    push_frame(event, way, correction, own, faulting);
    if (second.vector == kDoubleFault) cpu_.walker.faulting_walk(faulting);
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
void HandlerEntry::push_frame(const LoggedEvent& event, const WayIn& way,
                              const Correction& correction, bool own,
                              std::optional<std::uint64_t> faulting) {
  const LoggedState& state = event.before;
  const bool wide = cpu_.walker.long_mode();
  const unsigned bytes = wide ? 8 : way.is_wide() ? 4 : 2;
  const bool virtual8086 = (state.eflags & kVirtual8086) != 0;
  const unsigned flags_push = wide || (way.inner && !virtual8086) ? 2 : way.inner ? 6 : 0;
  const bool has_code = !event.interrupts() && !event.software && pushes_error_code(event.vector);
  const unsigned pushes = flags_push + (has_code ? 4 : 3);
  // RF ends with the first instruction after the return that loaded it, in the emulator with its
  // block.
  const Insn* const insn = seen_.flight.insn;
  const bool ended_resume = correction.passed_bytes != 0 ||
                            ((event.software || own) && insn != nullptr && !insn->first_in_block);
  const bool is_fault = !event.interrupts() && !event.software && !own;
  const bool no_resume =
      ended_resume || (cpu_.breakpoints.leaves_resume_out(seen_.flight.completed) && !is_fault);
  const std::uint64_t code_base = state.code64 ? 0 : state.segment[1].base;
  const auto own_flags =
      bytes_of(std::uint64_t{no_resume ? state.eflags & ~kResume : state.eflags});
  const std::uint64_t next = event.pc - code_base + correction.passed_bytes;
  const auto behind = bytes_of(state.code64 ? next : static_cast<std::uint32_t>(next));
  const auto error_code = bytes_of(std::uint64_t{correction.error_code});

  std::uint64_t top = way.top;
  seen_.linear.expect_stores(way.stack_base + ((top - pushes * bytes) & way.mask), pushes * bytes);
  for (unsigned n = 0; n < pushes; ++n) {
    top = (top - bytes) & way.mask;
    const std::uint64_t at = way.stack_base + top;
    const auto is_in_page = [&](std::uint64_t linear) {
      return faulting && cpu_.walker.reach(linear) >> 12 == cpu_.walker.reach(*faulting) >> 12;
    };
    if (is_in_page(at) || is_in_page(at + bytes - 1)) break;
    if (n == flags_push && (event.interrupts() || no_resume))
      seen_.linear.store(at, std::span(own_flags).first(bytes), Notice::of_resume);
    else if (n == flags_push + 2 && correction.passed_bytes != 0)
      seen_.linear.store(at, std::span(behind).first(bytes), Notice::taken);
    else if (n == flags_push + 3 && correction.error_code != event.error_code)
      seen_.linear.store(at, std::span(error_code).first(bytes), Notice::taken);
    else if (!seen_.linear.show(at, bytes, true))
      seen_.recording.give_up(
          "the stack of an interrupt lies in memory that is not RAM, which this monitor does not "
          "record");
  }
  seen_.linear.expect_no_stores();
}

/// An interrupt, an exception or INT n went on differently from by what a processor refuses it
/// with.
void HandlerEntry::refuse_wrong_delivery(const LoggedEvent& event, const Refusal& refusal) {
  char text[160];
  std::snprintf(text, sizeof text,
                "vector %02xh was delivered otherwise than by processors, which refuse it with "
                "%s(%x)",
                event.vector, name_of(refusal.vector), refusal.error_code);
  seen_.recording.give_up(text);
}

/// The offset of a gate of the 286 has 16 bits; the emulator takes 32 (80386 Programmer's Reference
/// Manual, 9.5).
void HandlerEntry::refuse_wrong_gate(const WayIn& way) {
  if (!way.is_wide() && way.gate.upper_offset() != 0)
    seen_.recording.give_up(
        "a gate of the 286 was used whose last word is not zero, which this emulator takes for a "
        "part of the offset");
}

}  // namespace citcat::monitor
