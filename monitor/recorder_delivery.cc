// Interrupts and exceptions: what a processor reads and pushes on its way into their handlers.

#include <cstring>
#include <utility>

#include "monitor/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kWriteFault = 2;  // of a page fault's error code
constexpr unsigned kDebug = 1, kStack = 12, kProtection = 13, kPageFault = 14;

/// Whether the exception is one that the access to an operand may raise.
bool is_of_operand(unsigned vector) { return vector >= kStack && vector <= kPageFault; }

/// Whether `following` says that INT n may not go through its gate: #GP that names the gate, which
/// lies within the table (Intel SDM vol. 3, 6.13).
bool is_refused_by_gate(const LoggedEvent& event, const LoggedEvent& following) {
  constexpr std::uint32_t kOfTable = 2;
  return event.software && following.vector == kProtection &&
         following.error_code == (event.vector << 3 | kOfTable) &&
         8 * event.vector + 7 <= event.before.idt_limit;
}

}  // namespace

/// A REP whose last iteration is done and which the emulator would look at once more, to find its
/// count used up. For a processor it has ended.
bool Recorder::repeat_used_up(const LoggedState& state) const {
  return in_flight_->what.repeated && iterations_ != 0 && is_used_up(state.gpr[1]);
}

/// A delivery that itself faults is followed in the log by another event at the same instruction;
/// it did not happen then.
/// `next`: the instruction that is about to start.
void Recorder::take_log(const Insn& next) {
  const bool real_mode = in_flight_ != nullptr && in_real_mode();
  const bool may_have_interrupted =
      real_mode && (next.first_in_block || in_flight_->what.kind == InsnKind::software_interrupt);
  if (!log_.pending() && !may_have_interrupted) return;
  std::vector<LoggedEvent> real;
  LoggedEvent event, following;
  LogItem item = log_.next(event);
  while (item == LogItem::event && active_) {
    item = log_.next(following);
    const bool aborted = item == LogItem::event && !following.interrupts() && !following.software &&
                         following.pc == event.pc && following.before.gpr[4] == event.before.gpr[4];
    if (event.real_mode)
      real.push_back(event);
    else if (!aborted || event.interrupts())
      deliver(event, !aborted);
    else if (is_refused_by_gate(event, following))
      read_gate(event);
    std::swap(event, following);
  }
  // What real mode delivered right before these can be told no more: the registers are others.
  if (active_ && item == LogItem::system_management)
    give_up(
        "system management mode was entered, which this monitor does not record; leave it out of "
        "the machine with -machine pc,smm=off");
  else if (active_ && item == LogItem::reset)
    give_up(
        "the processor was reset, which no replayer goes through; with -no-reboot the emulator "
        "ends there");
  else if (active_ && (may_have_interrupted || !real.empty()))
    take_real_events(std::move(real), next);
}

/// What INT n reads before its gate refuses it.
void Recorder::read_gate(const LoggedEvent& event) {
  const unsigned dwords = walker_.long_mode() ? 4 : 2;
  const std::uint64_t gate_at = event.before.idt_base + 4 * dwords * event.vector;
  for (unsigned n = 0; n < dwords; ++n) block_access(gate_at + 4 * n, 4, false);
}

void Recorder::deliver(const LoggedEvent& event, bool completed) {
  const bool at_flight = in_flight_ != nullptr && in_flight_linear_ == event.pc;
  const bool own_software = event.software && at_flight;
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
  const unsigned passed_bytes = used_up ? in_flight_->size : 0;
  const bool update_fails = page_fault && at_flight && in_flight_->what.updates_memory;
  const std::uint32_t error_code = event.error_code | (update_fails ? kWriteFault : 0);
  if (in_flight_ != nullptr && !unfinished && !own_software) finish(&event.before);
  if (!active_) return;
  if (in_flight_ != nullptr && task_ && task_->old_task.selector != event.before.tr.selector) {
    give_up("a task switch faulted in the new task, which this emulator gets wrong");
    return;
  }
  set_position();

  // The state in the log is newer than ours where the instruction in flight had changed it.
  if (!event.real_mode && event.before.cr0 != walker_.cr0())
    walker_.set_control({event.before.cr0, event.before.cr3, event.before.cr4, event.before.efer},
                        false);
  if (event.hardware) {
    ++interrupts_;
    sink_.event(RecordType::interrupt_acknowledge, static_cast<std::uint8_t>(event.vector), 1);
  } else if (event.nmi()) {
    ++interrupts_;
    sink_.event(RecordType::nmi, 0, 0);
  } else {
    ++(event.software ? software_ : exceptions_);
  }
  if (unfinished && exception && in_flight_ != nullptr &&
      in_flight_->what.mmx == MmxUse::before_operand && is_of_operand(event.vector))
    tags_.mmx_faulted();
  if (page_fault && at_flight && in_flight_ != nullptr && in_flight_->what.kind == InsnKind::cmps &&
      accesses_ == 0)
    read_first_string(event.before);
  if (page_fault) find_first_page(event, at_flight);
  if (page_fault) walker_.faulting_walk(event.cr2);
  if (completed && event.real_mode) deliver_real(event, passed_bytes);
  if (completed && !event.real_mode) {
    if (walker_.long_mode())
      deliver_long(event, passed_bytes, error_code);
    else
      deliver_protected(event, passed_bytes, error_code);
  }
  code_base_known_ = false;
  code_base_hidden_ = !in_real_mode();

  if (own_software) {
    finish();
  } else {
    in_flight_ = nullptr;
    iterations_ = 0;
  }
  next_linear_ = ~0u;
}

/// The page in front of the one that faults, where the first part of an instruction or operand lies
/// in it. Its walk has been made, and nothing else tells of it: the emulator reports no access, and
/// starts no instruction, that does not come about. An instruction's bytes are shown when it is
/// executed.
void Recorder::find_first_page(const LoggedEvent& event, bool at_flight) {
  constexpr std::uint32_t kLongest = 15;
  const std::uint64_t before = event.cr2 - event.pc;
  if ((event.cr2 & 0xfff) != 0) return;
  if (at_flight && in_flight_->what.updates_memory) {
    // The emulator was about to read: it has not marked the page as written.
    const std::uint64_t first = effective_address(*in_flight_, event.before);
    if ((first | 0xfff) + 1 == event.cr2) (void)walker_.translate_own_store(first);
    return;
  }
  const bool is_fetch = !at_flight && before != 0 && before < kLongest;
  if (is_fetch || walker_.was_marked(event.cr2 - 1))
    (void)walker_.translate(event.cr2 - 1, (event.error_code & kWriteFault) != 0);
}

/// A word or dword on the bus that the emulator has stored otherwise. Stacks may be unaligned: of
/// one that crosses a page the part in the first one is all that `physical` tells.
void Recorder::write_corrected(std::uint32_t physical, std::span<const std::uint8_t> bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if ((physical & 0xfff) <= 0x1000 - size && memory_.is_ram(physical, size))
    memory_.correct(physical, bytes);
  bus_.write(physical, bytes);
}

std::uint32_t Recorder::read_linear32(std::uint64_t linear) {
  const std::uint32_t low = read_linear16(linear);
  return low | std::uint32_t{read_linear16(linear + 2)} << 16;
}

std::uint16_t Recorder::read_linear16(std::uint64_t linear) {
  std::uint16_t value = 0;
  const auto physical = walker_.translate(linear, false);
  std::array<std::uint8_t, 2> bytes{};
  if (physical && memory_.is_readable(*physical, 2)) memory_.read(*physical, bytes);
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

Recorder::Descriptor Recorder::read_descriptor(const LoggedState& state, unsigned selector) {
  const std::uint64_t table = (selector & 4) != 0 ? state.ldtr.base : state.gdt_base;
  const std::uint64_t at = table + (selector & ~7u);
  block_access(at, 4, false);
  block_access(at + 4, 4, false);
  return {at, read_linear32(at), read_linear32(at + 4)};
}

/// What the processor reads and pushes to get into a handler through an interrupt or trap gate
/// (Intel SDM vol. 3, 6.12.1). The frame is in RAM already. `passed_bytes`: length of an
/// instruction that has ended for a processor and to which the emulator returns; `error_code`: what
/// a processor would push.
void Recorder::deliver_protected(const LoggedEvent& event, unsigned passed_bytes,
                                 std::uint32_t error_code) {
  const LoggedState& state = event.before;
  const std::uint64_t gate_at = state.idt_base + 8 * event.vector;
  read_gate(event);
  const Descriptor gate{gate_at, read_linear32(gate_at), read_linear32(gate_at + 4)};
  const unsigned type = (gate.high >> 8) & 0xf;
  if (type == 5) {
    give_up("a task gate was used, which this monitor does not record");
    return;
  }
  const unsigned push_bytes = (type & 8) != 0 ? 4 : 2;
  const Descriptor code = read_descriptor(state, gate.low >> 16);
  mark_accessed(code.linear);
  const bool virtual8086 = (state.eflags & kVirtual8086) != 0;
  const bool conforming = (code.high & 0x400) != 0;

  std::uint64_t stack_base = state.segment[2].base;
  auto top = static_cast<std::uint32_t>(state.gpr[4]);
  bool wide_stack = (state.segment[2].flags & 0x400000) != 0;
  unsigned pushes = 3;
  if (!conforming && code.dpl() < event.cpl) {
    // The task state segment names the inner stack; its 16-bit form is half as wide.
    const bool wide_tss = (state.tr.flags & 0x800) != 0;
    const std::uint64_t slot = state.tr.base + (wide_tss ? 4 + 8 * code.dpl() : 2 + 4 * code.dpl());
    block_access(slot, wide_tss ? 4 : 2, false);
    block_access(slot + (wide_tss ? 4 : 2), 2, false);
    top = wide_tss ? read_linear32(slot) : read_linear16(slot);
    const Descriptor stack = read_descriptor(state, read_linear16(slot + (wide_tss ? 4 : 2)));
    mark_accessed(stack.linear);
    stack_base = stack.base();
    wide_stack = (stack.high & 0x400000) != 0;
    pushes = virtual8086 ? 9 : 5;
  }
  const unsigned flags_push = pushes - 3;
  // RF ends with the first instruction after the return that loaded it, in the emulator with its
  // block.
  const bool ended_resume =
      passed_bytes != 0 || (event.software && in_flight_ != nullptr && !in_flight_->first_in_block);
  if (!event.interrupts() && !event.software && pushes_error_code(event.vector)) ++pushes;

  const auto behind =
      bytes_of(static_cast<std::uint32_t>(event.pc - state.segment[1].base + passed_bytes));
  const std::uint32_t mask = wide_stack ? 0xffffffff : 0xffff;
  expect_stores(stack_base + ((top - pushes * push_bytes) & mask), pushes * push_bytes);
  for (unsigned n = 0; n < pushes; ++n) {
    top = (top - push_bytes) & mask;
    // The emulator pushes RF set for interrupts, as it does for faults, and behind a REP. A
    // processor pushes it as it is (Intel SDM vol. 3, 17.3.1.1).
    const auto physical = walker_.translate(stack_base + top, true);
    if (n == flags_push && (event.interrupts() || ended_resume) && push_bytes == 4 && physical)
      write_corrected(*physical, bytes_of(ended_resume ? state.eflags & ~kResume : state.eflags));
    else if (n == flags_push + 3 && error_code != event.error_code && push_bytes == 4 && physical)
      write_corrected(*physical, bytes_of(error_code));
    else if (n == flags_push + 2 && passed_bytes != 0 && physical)
      write_corrected(*physical, std::span(behind).first(push_bytes));
    else
      block_access(stack_base + top, push_bytes, true);
  }
  bus_.expect_writes({}, {});
}

}  // namespace citcat::monitor
