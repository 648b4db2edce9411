#include "replay/machine/units/early_quirks.h"

#include <algorithm>
#include <array>
#include <span>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/retirement.h"
#include "x86/early_cpu_quirks.h"
#include "x86/microcode_8086.h"

namespace citcat {

namespace {

bool pops_cs(const DecodedInstruction& info) {
  return info.is(Operation::pop) && info.row->operands[0] == OperandForm::CS;
}

bool loads_cs(const DecodedInstruction& info) {
  return info.kind == InstructionClass::mov_to_segment && info.reg_field == kCs;
}

bool pushes_sp(const DecodedInstruction& info) {
  if (!info.is(Operation::push)) return false;
  const OperandForm form = info.row->operands[0];
  const bool of_register =
      form == OperandForm::Zv || (form == OperandForm::Ev && info.register_form);
  return of_register && info.rm_field == kEsp;
}

}  // namespace

bool EarlyCpuQuirks::prepare() {
  if (!cpu_.real_16_bit()) return false;
  patcher_.begin();
  if (!cpu_.traits.has_limits) refuse_unknown();
  const DecodedInstruction& info = *flight_.info;
  constexpr std::uint32_t kFlagDf = 0x400;
  if (cpu_.traits.checks_segment_end) {
    segment_end_ =
        segment_end_fault(info, cpu_.engine.gprs(), (cpu_.engine.eflags() & kFlagDf) != 0);
    if (segment_end_) {
      cpu_.request(AfterStop::segment_end);
      return true;
    }
  } else if (emulated_on_8088()) {
    cpu_.request(AfterStop::emulate);
    return true;
  }
  if (info.operand_count != 0 && wraps_between_words(info, cpu_.engine.gprs())) {
    const auto* const operand = std::find_if(info.operands.begin(), info.operands.end(),
                                             [](const MemoryOperand& o) { return o.read; });
    // Where the operand begins does not matter: the engine leaves the segment at its end.
    patcher_.lend_beyond(LinearAddr{cpu_.engine.segment_base(operand->segment)}, 2);
  }
  return false;
}

void EarlyCpuQuirks::deliver_segment_end() {
  const SegmentEndFault fault = *segment_end_;
  segment_end_.reset();
  if (fault.port_was_read) {
    ports_.read(static_cast<std::uint16_t>(cpu_.engine.gpr(kEdx)), flight_.info->operand_bytes);
  }
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t upper = cpu_.engine.gpr(i) & 0xffff0000;
    cpu_.engine.set_gpr(i, upper | fault.gpr[static_cast<std::size_t>(i)]);
  }
  delivery_.raise({fault.vector, 0u, 0}, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
}

bool EarlyCpuQuirks::emulated_on_8088() const {
  const DecodedInstruction& info = *flight_.info;
  if (cpu_.traits.has_limits) return false;
  if (pops_cs(info) || loads_cs(info) || NecInstructions::is_one(info)) return true;
  return runs_microcode(info) || info.is(Operation::esc) ||
         (cpu_.traits.pushes_sp_after && pushes_sp(info));
}

bool EarlyCpuQuirks::runs_microcode(const DecodedInstruction& info) const {
  if (!is_microcoded(info)) return false;
  const CpuTraits& traits = cpu_.traits;
  const bool shifts =
      info.flag_rule >= FlagRule::shift_left && info.flag_rule <= FlagRule::rotate_carry_right;
  return traits.has_microcode_8086 || (traits.shifts_by_steps && shifts) ||
         (traits.refuses_least_quotient && info.flag_rule == FlagRule::idiv);
}

/// What the replay makes nothing of.
void EarlyCpuQuirks::refuse_unknown() const {
  const DecodedInstruction& info = *flight_.info;
  if (info.row == nullptr) {
    throw ReplayStopped{
        cpu_.position,
        "an undocumented form whose result depends on what the processor did before"};
  }
  const bool compares = info.is(Operation::cmps) || info.is(Operation::scas);
  const bool by_carry = info.repeat == RepeatPrefix::repc || info.repeat == RepeatPrefix::repnc;
  if (compares && by_carry) {
    throw ReplayStopped{cpu_.position, "REPC and REPNC before CMPS and SCAS are not replayed"};
  }
}

void EarlyCpuQuirks::emulate() {
  flight_.wants_patch = false;
  patcher_.begin();
  const DecodedInstruction& info = *flight_.info;
  if (runs_microcode(info)) return run_microcode();
  if (pops_cs(info)) {
    pop_cs();
  } else if (loads_cs(info)) {
    load_cs();
  } else if (NecInstructions::is_one(info)) {
    run_nec_instruction();
  } else if (!info.is(Operation::esc)) {
    push_stack_pointer();
  }
  retirement_.complete_emulated();
}

void EarlyCpuQuirks::run_nec_instruction() {
  const DecodedInstruction& info = *flight_.info;
  const std::uint16_t value = info.has_modrm ? read_operand() : std::uint16_t{0};
  const std::uint16_t result = nec_.execute(value);
  if (info.has_modrm && !info.is(Operation::test1)) write_operand(result);
}

void EarlyCpuQuirks::pop_cs() {
  const auto sp = static_cast<std::uint16_t>(cpu_.engine.gpr(kEsp));
  set_code_segment(read_word(kSs, sp));
  cpu_.engine.set_gpr(kEsp, (sp + 2u) & 0xffff);
}

void EarlyCpuQuirks::load_cs() { set_code_segment(read_operand()); }

void EarlyCpuQuirks::set_code_segment(std::uint16_t selector) {
  Segment cs = cpu_.engine.segment(kCs);
  cs.selector = selector;
  cs.base = std::uint32_t{selector} << 4;
  cpu_.engine.set_segment(kCs, cs);
  cpu_.code.forget();
}

void EarlyCpuQuirks::push_stack_pointer() {
  const auto sp = static_cast<std::uint16_t>(cpu_.engine.gpr(kEsp));
  const std::uint16_t value = pushed_stack_pointer(cpu_.model, sp);
  cpu_.engine.set_gpr(kEsp, (sp - 2u) & 0xffff);
  write_stores(value);
}

/// Whose second byte lies at 0 where the first is at FFFF.
std::uint16_t EarlyCpuQuirks::read_word(SegmentRegister segment, std::uint16_t offset) {
  const std::uint32_t base = cpu_.engine.segment_base(segment);
  std::array<std::uint8_t, 2> bytes{};
  operands_.read(linear32(base, offset), std::span(bytes).first(1));
  operands_.read(linear32(base, (offset + 1u) & 0xffff), std::span(bytes).last(1));
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

void EarlyCpuQuirks::write_stores(std::uint16_t value) {
  const std::array<std::uint8_t, 2> bytes = {static_cast<std::uint8_t>(value),
                                             static_cast<std::uint8_t>(value >> 8)};
  operands_.write_stores(bytes);
}

/// That of ModRM.
std::uint16_t EarlyCpuQuirks::read_operand() {
  const DecodedInstruction& info = *flight_.info;
  if (info.register_form) {
    const unsigned number = info.operand_bytes == 1 ? info.rm_field & 3u : info.rm_field;
    const auto value = static_cast<std::uint16_t>(cpu_.engine.gpr(static_cast<int>(number)));
    if (info.operand_bytes != 1) return value;
    return info.rm_field < 4 ? value & 0xff : value >> 8;
  }
  const MemoryOperand& operand = info.operands[0];
  const auto offset = static_cast<std::uint16_t>(cpu_.offset_of(operand));
  if (info.operand_bytes != 1)
    return read_word(static_cast<SegmentRegister>(operand.segment), offset);
  return static_cast<std::uint16_t>(operands_.read_value(cpu_.linear_of(operand), 1));
}

void EarlyCpuQuirks::write_operand(std::uint16_t value) {
  const DecodedInstruction& info = *flight_.info;
  if (!info.register_form) {
    if (info.operand_bytes != 1) return write_stores(value);
    const std::array<std::uint8_t, 1> byte = {static_cast<std::uint8_t>(value)};
    return operands_.write_stores(byte);
  }
  if (info.operand_bytes != 1) return cpu_.set_low_part(info.rm_field, value, 2);
  const int number = info.rm_field & 3;
  const auto whole = static_cast<std::uint16_t>(cpu_.engine.gpr(number));
  const unsigned byte = value & 0xffu;
  const unsigned changed =
      info.rm_field < 4 ? (whole & 0xff00u) | byte : (whole & 0x00ffu) | byte << 8;
  cpu_.set_low_part(number, changed, 2);
}

void EarlyCpuQuirks::run_microcode() {
  const DecodedInstruction& info = *flight_.info;
  MicrocodeInput in;
  in.ax = static_cast<std::uint16_t>(cpu_.engine.gpr(kEax));
  in.dx = static_cast<std::uint16_t>(cpu_.engine.gpr(kEdx));
  in.cl = static_cast<std::uint8_t>(cpu_.engine.gpr(kEcx));
  in.flags = cpu_.engine.eflags();
  in.is_behind_repeat = cpu_.traits.has_microcode_8086 && is_behind_repeat(info);
  if (info.has_modrm) in.operand = read_operand();
  const MicrocodeResult out = citcat::run_microcode(info, in);
  cpu_.engine.set_eflags(out.flags);
  if (out.divide_error) return raise_divide_error();
  if (out.operand) {
    write_operand(*out.operand);
  } else {
    cpu_.set_low_part(kEax, out.ax, 2);
    cpu_.set_low_part(kEdx, out.dx, 2);
  }
  retirement_.complete_emulated();
}

/// The division is over, as it is after INT: the handler returns after it (8086 Family User's
/// Manual, 2-26), and the processor's queue status counts it.
void EarlyCpuQuirks::raise_divide_error() {
  const std::uint64_t next = retirement_.next_ip();
  const DecodedInstruction completed = *flight_.info;  // the handler may decode over this slot
  delivery_.raise({0, std::nullopt, 0}, next, DeliveredEvent::Kind::exception);
  flight_.info = &completed;
  retirement_.report_completed();
  retirement_.retire();
  flight_.info = nullptr;
}

void EarlyCpuQuirks::emulate_coprocessor_cycles() {
  const DecodedInstruction& info = *flight_.info;
  std::uint16_t offset = 0, selector = 0;
  if (info.operand_count != 0) {
    const MemoryOperand& operand = info.operands[0];
    offset = static_cast<std::uint16_t>(operand_offset(operand, cpu_.engine.gprs(), false));
    selector = cpu_.engine.segment_selector(operand.segment);
  }
  for (const PortWrite& cycle :
       coprocessor_cycles(info, static_cast<std::uint16_t>(cpu_.engine.eip()),
                          cpu_.engine.segment_selector(kCs), offset, selector)) {
    ports_.write(cycle.port, 2, cycle.value);
  }
  retirement_.complete_emulated();
}

}  // namespace citcat
