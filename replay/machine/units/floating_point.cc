#include "replay/machine/units/floating_point.h"

#include <algorithm>
#include <span>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/operands.h"
#include "x86/host_fpu.h"

namespace citcat {

namespace {

/// The MMX register that `info` writes, or -1 (SDM vol. 2, the instructions of map 0F).
int written_mmx_register(const DecodedInstruction& info) {
  if (info.is(Operation::movq2dq)) return -1;
  switch (info.opcode) {
    case 0x71:
    case 0x72:
    case 0x73:  // shifts by an immediate
      return info.rm_field;
    case 0x7f:  // MOVQ mm/m64, mm
      return info.register_form ? info.rm_field : -1;
    case 0x7e:  // MOVD r/m32, mm
    case 0xc5:  // PEXTRW
    case 0xd7:  // PMOVMSKB
    case 0xe7:  // MOVNTQ
    case 0xf7:  // MASKMOVQ
      return -1;
    default:
      return info.reg_field;
  }
}

}  // namespace

FloatingPoint::FloatingPoint(CpuContext& cpu, InFlight& flight, Operands& operands)
    : cpu_(cpu), flight_(flight), operands_(operands), unit_(std::make_unique<HostFpu>()) {
  unit_->set_wide(cpu.traits.has_long_mode);
}

void FloatingPoint::execute() {
  const DecodedInstruction& info = *flight_.info;
  const FpuForm form = unit_->prepare(info);
  if (form.action == FpuForm::Action::unsupported) {
    throw ReplayStopped{cpu_.position, "a floating-point instruction that is not supported"};
  }
  FpuOperands operands;
  cpu_.engine.read_fx(unit_->image());
  operands.code_selector = cpu_.engine.segment_selector(kCs);
  operands.code_offset = cpu_.ip();
  operands.save_sse = (cpu_.engine.cr(4) & 0x200) != 0;
  if (form.gpr != kNoRegister) operands.gpr = cpu_.engine.wide().gpr(form.gpr);
  // Compared into, or asked by FCMOVcc.
  const bool conditional = info.kind == InstructionClass::x87 && info.register_form;
  if (form.writes_eflags || conditional) operands.eflags = cpu_.engine.eflags();
  if (info.operand_count != 0) {
    const MemoryOperand& operand = info.operands[0];
    operands.data_selector = cpu_.engine.segment_selector(operand.segment);
    operands.data_offset = cpu_.offset_of(operand);
    if (operand.read) operands_.read_floating(std::span(operands.memory).first(operand.size));
  }
  const FpuResult result = unit_->execute(form, operands);
  switch (result.fault) {
    case FpuResult::Fault::none:
      break;
    case FpuResult::Fault::pending:
      throw CpuException{16, std::nullopt, 0};
    case FpuResult::Fault::simd:
      cpu_.engine.write_fx(unit_->image());
      // SDM vol. 3, 6.15, interrupt 19: #UD where the system does not take #XM.
      throw CpuException{static_cast<std::uint8_t>((cpu_.engine.cr(4) & 0x400) != 0 ? 19 : 6),
                         std::nullopt, 0};
    case FpuResult::Fault::protection:
      throw CpuException{13, 0u, 0};
  }
  if (result.model_specific) {
    ++model_specific_results_;
    if (!first_model_specific_) {
      const auto end = flight_.info->bytes.begin() + flight_.info->length;
      first_model_specific_ = {cpu_.position, cpu_.linear, {flight_.info->bytes.begin(), end}};
    }
  }
  cpu_.engine.write_fx(unit_->image());
  if (form.writes_gpr) cpu_.engine.wide().set_gpr(form.gpr, operands.gpr);
  if (form.writes_eflags) cpu_.engine.set_eflags(operands.eflags);
  operands_.write_stores(std::span(operands.memory).first(result.store_bytes));
}

void FloatingPoint::check_available(InstructionClass kind) const {
  // SDM vol. 3, table 2-2 and 13.1: what CR0.EM, MP, TS and CR4.OSFXSR make of the instruction.
  constexpr std::uint32_t kMp = 2, kEm = 4, kTs = 8, kOsFxsr = 0x200;
  const std::uint32_t cr0 = cpu_.engine.cr(0);
  const bool sse = kind == InstructionClass::sse || kind == InstructionClass::sse_fp ||
                   kind == InstructionClass::ldmxcsr || kind == InstructionClass::stmxcsr;
  const bool no_emulation = sse || kind == InstructionClass::mmx;
  if ((no_emulation && (cr0 & kEm) != 0) || (sse && (cpu_.engine.cr(4) & kOsFxsr) == 0)) {
    throw CpuException{6, std::nullopt, 0};
  }
  const std::uint32_t not_available =
      kind == InstructionClass::fwait ? ((cr0 & kMp) != 0 ? kTs : 0) : kEm | kTs;
  if ((cr0 & not_available) != 0) throw CpuException{7, std::nullopt, 0};
}

void FloatingPoint::note_mmx() {
  cpu_.engine.read_fx(unit_->image());
  if (flight_.info->kind == InstructionClass::mmx) {
    unit_->note_mmx(written_mmx_register(*flight_.info));
  } else {
    // EMMS leaves TOP at 0 as other MMX instructions do (seen on a host; docs/fidelity.md).
    // The image counts registers from TOP, so they turn with it.
    constexpr std::size_t kTopByte = 3, kRegisters = 32, kSlot = 16;
    constexpr std::uint8_t kTopBits = 0x38;
    auto& image = unit_->image();
    const std::size_t top = (image[kTopByte] & kTopBits) >> 3;
    const auto first = image.begin() + kRegisters;
    std::rotate(first, first + static_cast<std::ptrdiff_t>((8 - top) % 8 * kSlot),
                first + 8 * kSlot);
    image[kTopByte] = static_cast<std::uint8_t>(image[kTopByte] & ~kTopBits);
  }
  cpu_.engine.write_fx(unit_->image());
}

FloatingPoint::~FloatingPoint() = default;

void FloatingPoint::set_mxcsr_mask(std::uint32_t mask) { unit_->set_mxcsr_mask(mask); }

FxImage FloatingPoint::shown(bool wide_pointers) {
  cpu_.engine.read_fx(unit_->image());
  return unit_->shown(wide_pointers);
}

void FloatingPoint::take(const FxImage& shown, bool wide_pointers) {
  unit_->take(shown, wide_pointers);
  cpu_.engine.write_fx(unit_->image());
}

std::uint32_t FloatingPoint::accepted_mxcsr() const { return unit_->accepted_mxcsr(); }

void FloatingPoint::check_pending() {
  cpu_.engine.read_fx(unit_->image());
  if (unit_->exception_pending()) throw CpuException{16, std::nullopt, 0};
}

}  // namespace citcat
