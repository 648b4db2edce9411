#include "monitor/units/execution.h"

#include <string>

#include "monitor/state/address_msrs.h"

namespace citcat::monitor {
namespace {

/// Ports through which the A20 gate is moved: system control port A and the keyboard controller.
bool moves_a20(std::uint32_t port, unsigned size) {
  const auto covers = [&](std::uint32_t wanted) { return wanted - port < size; };
  return covers(0x92) || covers(0x60) || covers(0x64);
}

}  // namespace

void Execution::prepare(const Insn& insn) {
  flight_.accesses = 0;
  flight_.operand.reset();
  units_.x87.clear_environment();
  units_.far_transfer.clear();
  Registers& registers = cpu_.registers;
  switch (insn.what.kind) {
    case InsnKind::x87:
      units_.x87.begin(insn, seen_.code.offset_of(insn));
      break;
    case InsnKind::ins:
    case InsnKind::outs:
      flight_.port.number = static_cast<std::uint16_t>(registers.gpr(2));
      break;
    case InsnKind::in:
    case InsnKind::out:
      flight_.port.number =
          insn.what.port_in_dx ? static_cast<std::uint16_t>(registers.gpr(2)) : insn.what.port;
      flight_.port.value = static_cast<std::uint32_t>(registers.gpr(0));
      break;
    case InsnKind::software_interrupt:
    case InsnKind::icebp:
      flight_.stack_pointer = registers.gpr(4);
      break;
    case InsnKind::iret:
    case InsnKind::far_return:
    case InsnKind::far_transfer:
      units_.far_transfer.begin(insn);
      break;
    case InsnKind::resume:
      // What follows is translated before it is known that RSM was executed.
      registers.forget_segments();
      break;
    case InsnKind::debug_register:
      refuse_wrong_debug_status(insn);
      break;
    case InsnKind::fxsave:
    case InsnKind::fxrstor:
      flight_.operand = seen_.code.effective_address(insn, registers.state());
      if (insn.what.kind == InsnKind::fxrstor) units_.x87.show_image(insn, false);
      break;
    case InsnKind::flush_line:
      flight_.operand = seen_.code.effective_address(insn, registers.state());
      break;
    case InsnKind::invlpg:
      flight_.operand = seen_.code.effective_address(insn);
      break;
    case InsnKind::vector:
      seen_.recording.give_up(
          "AVX is used, which no replayer supports; choose a processor without it, such as -cpu "
          "qemu64");
      break;
    default:
      if (is_of_extended_state(insn.what.kind)) units_.extended_state.prepare(insn);
      break;
  }
}

void Execution::finish(const LoggedState* after) {
  if (flight_.insn == nullptr) return;
  const Insn& insn = *flight_.insn;
  flight_.iterations = 0;
  seen_.recording.set_position();
  switch (insn.what.kind) {
    case InsnKind::in:
      cpu_.sink.port(RecordType::io_read, flight_.port.number, low_after(0),
                     insn.what.operand_bytes);
      break;
    case InsnKind::out:
      cpu_.sink.port(RecordType::io_write, flight_.port.number, flight_.port.value,
                     insn.what.operand_bytes);
      if (moves_a20(flight_.port.number, insn.what.operand_bytes)) follow_a20();
      break;
    case InsnKind::halt:
      cpu_.sink.event(RecordType::halt, 0, 0);
      break;
    case InsnKind::invd:
      cpu_.bus.flush(1);
      break;
    case InsnKind::wbinvd:
      cpu_.bus.flush(2);
      break;
    case InsnKind::cpuid:
      units_.values.say("CPUID");
      break;
    case InsnKind::rdtsc:
      units_.values.say("RDTSC");
      break;
    case InsnKind::rdtscp:
      units_.values.say("RDTSCP");
      break;
    case InsnKind::rdmsr:
      units_.values.say("RDMSR");
      break;
    case InsnKind::wrmsr:
      finish_wrmsr();
      break;
    case InsnKind::rdpmc:
      units_.values.say("RDPMC");
      break;
    case InsnKind::rdrand:
      units_.values.say_random("RDRAND");
      break;
    case InsnKind::rdseed:
      units_.values.say_random("RDSEED");
      break;
    case InsnKind::invlpg:
      cpu_.walker.invalidate(*flight_.operand);
      break;
    case InsnKind::control_register:
      seen_.control.load(insn.what, flight_.left);
      break;
    case InsnKind::debug_register:
      finish_debug_register(insn);
      break;
    case InsnKind::descriptor_table:
    case InsnKind::local_table:
      seen_.tables.forget();
      cpu_.segments.forget_selectors();
      cpu_.registers.forget_segments();
      break;
    case InsnKind::task_register:
      units_.task_register.finish();
      break;
    case InsnKind::iret:
    case InsnKind::far_return:
    case InsnKind::far_transfer:
      units_.far_transfer.finish(after);
      break;
    case InsnKind::fxsave:
      units_.x87.show_image(insn, true);
      break;
    case InsnKind::fxrstor:
      units_.x87.load_image(insn);
      break;
    case InsnKind::flush_line:
      // The emulator does not walk for it, nor does the replay.
      if (const auto physical = cpu_.walker.locate(*flight_.operand))
        cpu_.bus.flush_line(*physical);
      break;
    case InsnKind::x87:
    case InsnKind::x87_init:
    case InsnKind::x87_load:
    case InsnKind::x87_store:
    case InsnKind::x87_save:
    case InsnKind::emms:
      units_.x87.finish(insn);
      break;
    default:
      if (is_of_extended_state(insn.what.kind)) units_.extended_state.finish(insn);
      break;
  }
  cpu_.segments.forget(cpu_.in_real_mode() && loads_code_segment(insn.what.kind)
                           ? SegmentLimits::kCode
                           : insn.what.loaded_segments);
  if (insn.what.misdone) seen_.recording.give_up(insn.details().why_misdone);
  if (insn.what.mmx != MmxUse::none) units_.x87.mmx_executed();
  ++flight_.completed;
  flight_.insn = nullptr;
}

void Execution::end_before(const LoggedState& before, const char* what) {
  if (flight_.insn == nullptr) return;
  const Insn& insn = *flight_.insn;
  if (cpu_.in_real_mode() && flight_.delivers_itself())
    return seen_.recording.give_up(
        std::string(what) + " came right after INT n of real mode: what it pushed is not known");
  const std::uint64_t base = before.code64 ? 0 : before.segment[1].base;
  const bool stays = !insn.what.branch && insn.narrowed(before.ip + base) == flight_.linear;
  if (stays && !flight_.repeat_used_up(before)) return;
  flight_.left = &before;
  finish(&before);
  flight_.left = nullptr;
}

/// In system management mode the emulator lets no gate clear an address bit.
void Execution::follow_a20() {
  if (!cpu_.follow_a20() && cpu_.in_system_management)
    seen_.recording.give_up(
        "the A20 gate was closed in system management mode, where the emulator ignores it");
}

void Execution::finish_wrmsr() {
  units_.values.say("WRMSR");
  if (cpu_.has_long_mode() &&
      is_refused_address(low_after(1), flight_.gpr_after(2, cpu_.registers) << 32 | low_after(0)))
    seen_.recording.give_up(
        "WRMSR wrote an address that is not canonical, which processors refuse with #GP(0)");
  if (cpu_.several)
    units_.local_apic.note_wrmsr(static_cast<std::uint32_t>(cpu_.registers.gpr(1)),
                                 static_cast<std::uint32_t>(cpu_.registers.gpr(0)),
                                 static_cast<std::uint32_t>(cpu_.registers.gpr(2)));
}

void Execution::finish_debug_register(const Insn& insn) {
  constexpr std::uint8_t kToRegister = 0x23;
  if (insn.opcode() == kToRegister) cpu_.load_breakpoints();
}

/// DR6 is about to be read (as DR4 too, Intel SDM vol. 3, 17.2.2), in which the emulator may have
/// other breakpoints than a processor.
void Execution::refuse_wrong_debug_status(const Insn& insn) {
  constexpr std::uint8_t kFromRegister = 0x21;
  const unsigned number = insn.modrm_reg();
  if (insn.opcode() != kFromRegister || (number != 4 && number != 6)) return;
  if ((cpu_.registers.state().dr[6] & 0xf) != cpu_.breakpoints.bits())
    seen_.recording.give_up(
        "DR6 was read, in which this emulator names other breakpoints than a processor");
}

}  // namespace citcat::monitor
