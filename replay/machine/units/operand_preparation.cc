#include "replay/machine/units/operand_preparation.h"

#include <array>
#include <cstring>
#include <optional>

#include "replay/machine/units/far_return.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/x86/early_cpu_quirks.h"

namespace citcat {

namespace {

bool is_port_access(InstructionClass kind) {
  return kind == InstructionClass::in || kind == InstructionClass::out ||
         kind == InstructionClass::ins || kind == InstructionClass::outs;
}

}  // namespace

void OperandPreparation::prepare() {
  const DecodedInstruction& info = *flight_.info;
  const bool may_look_up = info.opcode_map == 1 && info.opcode <= 3;
  if (may_look_up && info.register_form) [[unlikely]]
    segments_.tell_looked_up();
  if (info.kind == InstructionClass::mmx || info.kind == InstructionClass::emms) [[unlikely]] {
    // The engine does not look for what the x87 unit has pending (SDM vol. 2, MOVQ and EMMS: #MF).
    fpu_.check_available(InstructionClass::mmx);
    fpu_.check_pending();
  }
  const bool loads_selector =
      info.kind == InstructionClass::mov_to_segment || info.kind == InstructionClass::ltr ||
      info.kind == InstructionClass::lldt || info.kind == InstructionClass::in ||
      info.kind == InstructionClass::out || info.kind == InstructionClass::far_jump;
  if (info.operand_count == 0 && info.ea_count == 0 && !loads_selector) return;
  check_allowed();
  std::array<std::uint32_t, 6> bases;
  for (int i = 0; i < 6; ++i) bases[static_cast<std::size_t>(i)] = cpu_.engine.segment_base(i);
  const std::uint64_t* regs = cpu_.engine.gprs();
  if (wants_aligned_operand(info) &&
      operand_linear(info.operands[0], regs, bases.data(), cpu_.stack32()) % 16 != 0) {
    throw CpuException{13, 0u, 0};
  }
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] =
        kt_address(info, i, cpu_.linear - cpu_.code.base, regs, bases.data(), cpu_.stack32());
  }
  if (info.kind == InstructionClass::invlpg) {
    flight_.invlpg_linear = operand_linear(info.operands[0], regs, bases.data(), cpu_.stack32());
  }
  if (is_port_access(info.kind)) ports_.check_permission();
  // An 80286 hands a coprocessor the operand's address and leaves the transfers to it.
  if (!cpu_.traits.coprocessor_by_ports || info.kind != InstructionClass::x87) {
    for_each_access(info, regs, bases.data(), cpu_.stack32(),
                    [&](const DataAccess& a) { operands_.access(a, info.operands[a.operand]); });
  }
  if (may_look_up && !info.register_form) [[unlikely]]
    segments_.tell_looked_up();
  prepare_descriptors();
  if (info.kind == InstructionClass::push_segment && info.operand_bytes == 4 &&
      !pushes_before_a_page()) {
    std::memcpy(&flight_.segment_push_upper,
                cpu_.memory.host(flight_.stores[0].physical + flight_.stores[0].size), 2);
    flight_.restore_segment_push = true;
  }
  if (flight_.stores_to_code || info.kind == InstructionClass::ins) operands_.keep_overwritten();
}

/// Of selectors that the engine is going to load.
void OperandPreparation::prepare_descriptors() {
  switch (flight_.info->kind) {
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::ltr:
    case InstructionClass::lldt:
      segments_.watch();
      break;
    case InstructionClass::far_return:
    case InstructionClass::iret:
      if (cpu_.protected_mode()) returns_.tell_transfer_descriptors();
      break;
    default:
      break;
  }
}

/// What a processor refuses before it touches an operand, by mode and privilege (Intel SDM vol. 2,
/// the exceptions of each instruction). The engine refuses it too, but asks for no operand first.
void OperandPreparation::check_allowed() const {
  switch (flight_.info->kind) {
    case InstructionClass::pushf:
    case InstructionClass::popf:
    case InstructionClass::iret:
      cpu_.require_iopl_in_v86();
      break;
    case InstructionClass::lldt:
    case InstructionClass::ltr:
      if (!cpu_.protected_mode()) throw CpuException{6, std::nullopt, 0};
      cpu_.require_ring0();
      break;
    case InstructionClass::lgdt:
    case InstructionClass::lidt:
    case InstructionClass::lmsw:
    case InstructionClass::invlpg:
      cpu_.require_ring0();
      break;
    case InstructionClass::mmx:
    case InstructionClass::sse:
      fpu_.check_available(flight_.info->kind);
      break;
    default:
      break;
  }
}

bool OperandPreparation::pushes_before_a_page() const {
  if (flight_.info->operand_bytes != 4) return false;
  return (cpu_.linear_of(flight_.info->operands[0]) & kPageMask) + flight_.info->operand_bytes >
         kPageSize;
}

}  // namespace citcat
