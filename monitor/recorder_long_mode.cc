// Long mode: deliveries through gates of 16 bytes, and what is not recorded of it.

#include "monitor/recorder.h"

namespace citcat::monitor {
namespace {

// A task segment of long mode (Intel SDM vol. 3, figure 7-11).
constexpr unsigned kStacksOfLevels = 4, kInterruptStacks = 0x24;
constexpr unsigned kSlot = 8;
constexpr std::uint32_t kFiveLevels = 1u << 12, kProcessContexts = 1u << 17;  // of CR4

}  // namespace

bool pushes_error_code(unsigned vector) {
  return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21;
}

/// Ends the recording where paging is of a kind that is not followed, or the processor has state
/// that is not.
void Recorder::refuse_unheld() {
  const std::uint32_t cr4 = registers_.control().cr4;
  const bool newer_components = (facts_.xcr0 & ~(kX87State | kSseState)) != 0;
  if ((cr4 & kFiveLevels) != 0)
    give_up(
        "page tables of five levels are used, which no replayer holds; the kernel option no5lvl");
  else if ((cr4 & kProcessContexts) != 0)
    give_up("CR4.PCIDE is set, which this monitor does not record; the kernel option nopcid");
  else if ((cr4 & kCr4OsXsave) != 0 && newer_components)
    give_up(
        "AVX or newer components are enabled in XCR0, which no replayer holds; choose a processor "
        "without them, such as -cpu qemu64,+xsave");
}

/// Outside 64-bit mode the emulator prints half of a base that LTR has loaded in it.
void Recorder::note_task_base(const LoggedState& state) {
  if (state.code64) task_base_ = state.tr.base;
}

/// LLDT and LTR have read a dword of a descriptor, which has 16 bytes in long mode. LLDT reads that
/// the last of them are zero where they have to be; the emulator does not (AMD64 APM vol.
/// 2, 4.8.3).
void Recorder::note_upper_half(InsnKind kind, std::uint64_t linear,
                               std::span<const std::uint8_t> dword) {
  constexpr unsigned kUpperBase = 3;
  if ((kind != InsnKind::local_table && kind != InsnKind::task_register) || !walker_.long_mode() ||
      ++accesses_ != kUpperBase)
    return;
  if (kind == InsnKind::local_table)
    block_access(linear + 4, 4, false);
  else
    task_base_high_ = dword_of(dword);
}

/// LTR has ended.
void Recorder::load_task_base() {
  task_base_ =
      std::uint64_t{task_base_high_} << 32 | static_cast<std::uint32_t>(registers_.state().tr.base);
}

bool Recorder::returns_from_64_bits() const {
  return in_flight_ != nullptr && in_flight_->what.kind == InsnKind::iret &&
         in_flight_->code == CodeSize::bits64;
}

std::uint64_t Recorder::read_linear64(std::uint64_t linear) {
  const std::uint64_t low = read_linear32(linear);
  return low | std::uint64_t{read_linear32(linear + 4)} << 32;
}

/// The stack of the handler: one of the interrupt stack table, the inner level's, or the one in
/// use; aligned (Intel SDM vol. 3, 6.14.2 to 6.14.5).
std::uint64_t Recorder::long_mode_stack(const LoggedEvent& event, unsigned interrupt_stack,
                                        const Descriptor& code) {
  const LoggedState& state = event.before;
  const std::uint64_t task = state.code64 ? state.tr.base : task_base_;
  const bool conforming = (code.high & 0x400) != 0;
  std::uint64_t top = state.gpr[4];
  std::optional<unsigned> slot;
  if (interrupt_stack != 0)
    slot = kInterruptStacks + kSlot * (interrupt_stack - 1);
  else if (!conforming && code.dpl() < event.cpl)
    slot = kStacksOfLevels + kSlot * code.dpl();
  if (slot) {
    block_access(task + *slot, kSlot, false);
    top = read_linear64(task + *slot);
  }
  return top & ~std::uint64_t{15};
}

/// What the processor reads and pushes. The frame is in RAM already; arguments as for
/// deliver_protected().
void Recorder::deliver_long(const LoggedEvent& event, unsigned passed_bytes,
                            std::uint32_t error_code) {
  const LoggedState& state = event.before;
  note_task_base(state);
  const std::uint64_t gate_at = state.idt_base + 16 * event.vector;
  read_gate(event);
  const std::uint32_t low = read_linear32(gate_at), high = read_linear32(gate_at + 4);
  const Descriptor code = read_descriptor(state, low >> 16);
  std::uint64_t top = long_mode_stack(event, high & 7, code);
  const bool has_code = !event.interrupts() && !event.software && pushes_error_code(event.vector);
  const unsigned pushes = has_code ? 6 : 5;
  const bool ended_resume =
      passed_bytes != 0 || (event.software && in_flight_ != nullptr && !in_flight_->first_in_block);
  // The emulator pushes RF set for interrupts, and behind a REP.
  const bool corrects_flags = event.interrupts() || ended_resume;
  const std::uint64_t flags = ended_resume ? state.eflags & ~kResume : state.eflags;
  const std::uint64_t behind = event.pc - (state.code64 ? 0 : state.segment[1].base) + passed_bytes;

  enum : unsigned { kStack, kStackPointer, kFlags, kCode, kInstruction, kErrorCode };
  expect_stores(top - pushes * kSlot, pushes * kSlot);
  for (unsigned n = kStack; n < pushes; ++n) {
    top -= kSlot;
    const auto physical = walker_.translate(top, true);
    if (n == kFlags && corrects_flags && physical)
      write_corrected(*physical, bytes_of(flags));
    else if (n == kInstruction && passed_bytes != 0 && physical)
      write_corrected(*physical, bytes_of(behind));
    else if (n == kErrorCode && error_code != event.error_code && physical)
      write_corrected(*physical, bytes_of(std::uint64_t{error_code}));
    else
      block_access(top, kSlot, true);
  }
  bus_.expect_writes({}, {});
  mark_accessed(code.linear);
}

}  // namespace citcat::monitor
