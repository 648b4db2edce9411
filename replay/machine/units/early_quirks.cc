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
#include "replay/x86/early_cpu_quirks.h"

namespace citcat {

namespace {

bool pops_cs(const DecodedInstruction& info) {
  return info.is(Operation::pop) && info.row->operands[0] == OperandForm::CS;
}

}  // namespace

bool EarlyCpuQuirks::prepare() {
  if (!cpu_.real_16_bit()) return false;
  patcher_.begin();
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
  } else {
    reduce_8088_shift();
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

void EarlyCpuQuirks::reduce_8088_shift() {
  const DecodedInstruction& info = *flight_.info;
  const bool by_cl = info.row != nullptr && info.row->operands[1] == OperandForm::CL;
  const unsigned count = cpu_.engine.gpr(kEcx) & 0xff;
  if (!by_cl || count <= 31) return;
  if (info.register_form && info.rm_field == kEcx) {
    throw ReplayStopped{cpu_.position, "a shift of CL or CX by more than 31", ~std::uint64_t{0}, "",
                        ""};
  }
  patcher_.replace_count();
}

bool EarlyCpuQuirks::emulated_on_8088() const {
  const DecodedInstruction& info = *flight_.info;
  if (pops_cs(info)) return true;
  if (!cpu_.traits.pushes_sp_after || !info.is(Operation::push)) return false;
  const OperandForm form = info.row->operands[0];
  const bool of_register =
      form == OperandForm::Zv || (form == OperandForm::Ev && info.register_form);
  return of_register && info.rm_field == kEsp;
}

void EarlyCpuQuirks::emulate() {
  flight_.wants_patch = false;
  patcher_.begin();
  const auto sp = static_cast<std::uint16_t>(cpu_.engine.gpr(kEsp));
  if (pops_cs(*flight_.info)) {
    const std::uint32_t stack = cpu_.engine.segment_base(kSs);
    std::array<std::uint8_t, 2> bytes{};
    operands_.read(linear32(stack, sp), std::span(bytes).first(1));
    operands_.read(linear32(stack, (sp + 1u) & 0xffff), std::span(bytes).last(1));
    const auto selector = static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
    Segment cs = cpu_.engine.segment(kCs);
    cs.selector = selector;
    cs.base = std::uint32_t{selector} << 4;
    cpu_.engine.set_gpr(kEsp, (sp + 2u) & 0xffff);
    cpu_.engine.set_segment(kCs, cs);
    cpu_.code.forget();
  } else {
    const std::uint16_t value = pushed_stack_pointer(cpu_.model, sp);
    const std::array<std::uint8_t, 2> bytes = {static_cast<std::uint8_t>(value),
                                               static_cast<std::uint8_t>(value >> 8)};
    cpu_.engine.set_gpr(kEsp, (sp - 2u) & 0xffff);
    operands_.write_stores(bytes);
  }
  retirement_.complete_emulated();
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
