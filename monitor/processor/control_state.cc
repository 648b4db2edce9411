#include "monitor/processor/control_state.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kFiveLevels = 1u << 12, kProcessContexts = 1u << 17;  // of CR4

ControlRegisters control_of(const LoggedState& state) {
  return {state.cr0, state.cr3, state.cr4, state.efer};
}

}  // namespace

void ControlState::take() {
  if (!recording_.active()) return;
  take_paging();
  refuse_unheld();
  cpu_.load_breakpoints();
}

void ControlState::take_paging() {
  change_mode();
  (void)cpu_.follow_a20();
  // As if CR3 were loaded now: what PAE keeps of it since then is nowhere else to be seen.
  cpu_.walker.set_control(cpu_.registers.control(), true);
}

void ControlState::take(const LoggedState& loaded) {
  change_mode();
  cpu_.walker.set_a20(loaded.a20);
  cpu_.walker.set_control(control_of(loaded), true);
  refuse_unheld();
  cpu_.load_breakpoints();
}

void ControlState::load(const InsnClass& what, const LoggedState* left) {
  const bool was_real = cpu_.in_real_mode(), was_long = cpu_.walker.long_mode();
  cpu_.walker.set_control(left != nullptr ? control_of(*left) : cpu_.registers.control(),
                          what.loads_cr3);
  if (cpu_.in_real_mode() != was_real || cpu_.walker.long_mode() != was_long) change_mode();
  refuse_unheld();
}

/// Segments stay as they are until they are loaded.
void ControlState::change_mode() {
  cpu_.bases.forget();
  tables_.forget();
  code_.forget_segment(true);
  cpu_.segments.forget_all();
  code_.take_selector();
  cpu_.registers.forget_segments();
}

void ControlState::refuse_unheld() {
  const std::uint32_t cr4 = cpu_.registers.control().cr4;
  const bool newer_components = (cpu_.facts.xcr0 & ~(kX87State | kSseState)) != 0;
  if ((cr4 & kFiveLevels) != 0)
    recording_.give_up(
        "page tables of five levels are used, which no replayer supports; use the kernel option "
        "no5lvl");
  else if ((cr4 & kProcessContexts) != 0)
    recording_.give_up(
        "CR4.PCIDE is set, which this monitor does not record; use the kernel option nopcid");
  else if ((cr4 & kCr4OsXsave) != 0 && newer_components)
    recording_.give_up(
        "AVX or newer components are enabled in XCR0, which no replayer supports; choose a "
        "processor without them, such as -cpu qemu64,+xsave");
}

}  // namespace citcat::monitor
