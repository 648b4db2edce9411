#include "replay/machine/units/retirement.h"

#include <cstring>
#include <utility>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

void Retirement::report_completed() {
  flight_.reads_to_skip = 0;
  if (flight_.restore_segment_push) {
    flight_.restore_segment_push = false;
    const InFlight::Store& s = flight_.stores[0];
    std::memcpy(cpu_.memory.host(s.physical.plus32(s.size)), &flight_.segment_push_upper, 2);
  }
  const bool loads_flags =
      flight_.info->kind == InstructionClass::iret || flight_.info->kind == InstructionClass::popf;
  const bool quiet = expectation_.compares && !expectation_.is_now() && !loads_flags;
  for (std::size_t i = 0; i < flight_.store_count; ++i) {
    const InFlight::Store& s = flight_.stores[i];
    cpu_.memory.mark_defined(s.physical, s.size);
    flight_.accessed = s.linear;
    if (expectation_.compares && flight_.copies_string())
      expectation_.judge->copied(flight_.copied_from, s.physical, s.size);
    cpu_.audience.write(s.physical, {cpu_.memory.host(s.physical), s.size}, AccessKind::data,
                        cpu_.position,
                        !quiet || expectation_.expects_stores || flight_.is_floating_point());
  }
  if (flight_.info->kind != InstructionClass::plain) report_descriptors();
  if (quiet && expectation_.keeps_account)
    expectation_.untold_flags =
        expectation_.untold_flags + flag_effect_of(*flight_.info, cpu_.engine.gpr(kEcx));
  cpu_.audience.instruction(executed(), cpu_.position, !quiet);
}

ExecutedInstruction Retirement::executed() const {
  ExecutedInstruction e;
  e.info = flight_.info;
  e.linear = cpu_.linear;
  e.offset = cpu_.offset_in_code(cpu_.linear, cpu_.code.base);
  e.physical = flight_.physical;
  e.ea_count = flight_.ea_count;
  for (unsigned i = 0; i < flight_.ea_count; ++i) e.ea[i] = flight_.ea[i];
  return e;
}

void Retirement::report_descriptors() {
  switch (flight_.info->kind) {
    case InstructionClass::iret:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
      cpu_.code.forget();
      if (cpu_.protected_mode() && !cpu_.long_mode()) segments_.mark_transfer_accessed();
      break;
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::ltr:
      segments_.report_watched();
      break;
    default:
      break;
  }
}

void Retirement::retire() {
  flight_.active = false;
  flight_.iterating = false;
  flight_.repeat_done = false;
  flight_.retries = 0;
  cpu_.resume_flag = false;
  if (flight_.info->ends_block || flight_.info->kind != InstructionClass::plain) {
    rights_.stale = true;
    after_system(*flight_.info);
  }
  ++cpu_.position.instruction;
  cpu_.position.iteration = 0;
  ++cpu_.stats.alone;
}

void Retirement::after_system(const DecodedInstruction& info) {
  switch (info.kind) {
    case InstructionClass::mmx:
    case InstructionClass::emms:
      fpu_.note_mmx();
      break;
    case InstructionClass::mov_to_cr:
      cpu_.code.forget();
      cpu_.mmu.control_changed(info.reg_field == 3 && !std::exchange(flight_.keeps_context, false));
      if (info.reg_field == 3 || info.reg_field == 0) {
        cpu_.audience.address_space(cpu_.engine.address_space(), cpu_.position);
      }
      break;
    case InstructionClass::lmsw:
    case InstructionClass::clts:
      cpu_.mmu.control_changed(false);
      break;
    case InstructionClass::invlpg:
      cpu_.code.forget();
      cpu_.mmu.invalidate_page(flight_.invlpg_linear);
      break;
    case InstructionClass::cache_flush:
      cpu_.audience.cache_flushed(info.is(Operation::wbinvd), cpu_.position);
      break;
    case InstructionClass::iret:
      cpu_.resume_flag = (cpu_.engine.system_flags() & kFlagRf) != 0;
      cpu_.engine.drop_resume_flag();
      break;
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
      if (info.reg_field == kSs) debug_.shade(cpu_.position.instruction + 1);
      break;
    case InstructionClass::out:
    case InstructionClass::outs:
      ports_.follow_a20_gate();
      break;
    default:
      break;
  }
}

std::uint64_t Retirement::next_ip() const {
  const std::uint64_t next = cpu_.ip() + flight_.info->length;
  if (cpu_.bits64()) return next;
  return next & (cpu_.traits.sixteen_bit ? 0xffff : 0xffffffff);
}

void Retirement::complete_emulated() {
  const std::uint32_t flags = cpu_.engine.system_flags();
  cpu_.set_ip(next_ip());
  cpu_.engine.clear_inhibit();
  report_completed();
  retire();
  if ((flags & kFlagTf) != 0) debug_.add_pending(DebugUnit::kStep);
  if (debug_.pending() != 0) delivery_.take_debug_trap();
}

void Retirement::finish_mode_switch(std::uint32_t flags_before) {
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.code.forget();
  retire();
  if ((flags_before & kFlagTf) == 0) return;
  debug_.add_pending(DebugUnit::kStep);
  delivery_.take_debug_trap();
}

}  // namespace citcat
