#include "replay/machine/units/operand_preparation.h"

#include <array>
#include <cstring>
#include <optional>

#include "replay/machine/units/far_return.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/segment_loader.h"

namespace citcat {

namespace {

bool is_port_access(InstructionClass kind) {
  return kind == InstructionClass::in || kind == InstructionClass::out ||
         kind == InstructionClass::ins || kind == InstructionClass::outs;
}

}  // namespace

void OperandPreparation::prepare() {
  const DecodedInstruction& info = *flight_.info;
  const bool looks_up = looks_up_descriptor(info);
  if (looks_up && info.register_form) [[unlikely]]
    segments_.tell_looked_up();
  if (info.kind == InstructionClass::mmx || info.kind == InstructionClass::emms) [[unlikely]] {
    // The engine does not look for what the x87 unit has pending (SDM vol. 2, MOVQ and EMMS: #MF).
    fpu_.check_available(InstructionClass::mmx);
    fpu_.check_pending();
  }
  const ClassFacts& facts = class_facts(info.kind);
  if (info.operand_count == 0 && info.ea_count == 0 && !facts.always_prepared) return;
  require(facts.permission);
  const std::array<std::uint64_t, 6> bases = cpu_.bases();
  const std::uint64_t* regs = cpu_.engine.gprs();
  if (wants_aligned_operand(info) &&
      operand_linear(info.operands[0], regs, bases.data(), cpu_.stack32()).offset_in(16) != 0) {
    throw CpuException{13, 0u, 0};
  }
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] = kt_address(info, i, cpu_.offset_in_code(cpu_.linear, cpu_.code.base), regs,
                               bases.data(), cpu_.stack32());
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
  if (looks_up && !info.register_form) [[unlikely]]
    segments_.tell_looked_up();
  prepare_descriptors(facts.descriptors);
  if (info.kind == InstructionClass::push_segment && info.operand_bytes == 4 &&
      !pushes_before_a_page()) {
    std::memcpy(&flight_.segment_push_upper,
                cpu_.memory.host(flight_.stores[0].physical.plus32(flight_.stores[0].size)), 2);
    flight_.restore_segment_push = true;
  }
  if (flight_.stores_to_code || info.kind == InstructionClass::ins) operands_.keep_overwritten();
}

void OperandPreparation::prepare_descriptors(DescriptorUse use) {
  switch (use) {
    case DescriptorUse::none:
      break;
    case DescriptorUse::loads:
      segments_.watch();
      break;
    case DescriptorUse::returns:
      if (cpu_.protected_mode() && !cpu_.long_mode()) returns_.tell_transfer_descriptors();
      break;
  }
}

/// The engine refuses it too, but asks for no operand first.
void OperandPreparation::require(Permission permission) const {
  switch (permission) {
    case Permission::none:
      break;
    case Permission::iopl_in_v86:
      cpu_.require_iopl_in_v86();
      break;
    case Permission::ring0_protected:
      if (!cpu_.protected_mode()) throw CpuException{6, std::nullopt, 0};
      cpu_.require_ring0();
      break;
    case Permission::ring0:
      cpu_.require_ring0();
      break;
    case Permission::vector_unit:
      fpu_.check_available(flight_.info->kind);
      break;
  }
}

bool OperandPreparation::pushes_before_a_page() const {
  if (flight_.info->operand_bytes != 4) return false;
  return cpu_.linear_of(flight_.info->operands[0]).offset_in_page() + flight_.info->operand_bytes >
         kPageSize;
}

}  // namespace citcat
