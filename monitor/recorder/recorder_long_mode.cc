// Long mode: deliveries through gates of 16 bytes, and what is not recorded of it.

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

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
  if (state.code64) task_base_.whole = state.tr.base;
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
    task_base_.high = dword_of(dword);
}

/// LTR has ended.
void Recorder::load_task_base() {
  const LoggedSegment task = registers_.state().tr;
  if ((task.selector & 0xfffc) == 0)
    return give_up("LTR of a null selector was executed, which processors refuse with #GP(0)");
  task_base_.whole = std::uint64_t{task_base_.high} << 32 | static_cast<std::uint32_t>(task.base);
}

bool Recorder::returns_from_64_bits() const {
  return in_flight_ != nullptr && in_flight_->what.kind == InsnKind::iret &&
         in_flight_->code == CodeSize::bits64;
}

}  // namespace citcat::monitor
