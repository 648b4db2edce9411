// Instructions executed here instead of by the engine: those it does not know, those whose result
// comes from outside, and those it does differently from the processor (docs/fidelity.md).

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "formats/io/error.h"
#include "replay/machine/machine_descriptor.h"
#include "replay/x86/host_fpu.h"

namespace citcat {

namespace {

constexpr std::uint32_t kFlagOf = 1u << 11;
constexpr std::uint32_t kMsrTsc = 0x10, kMsrSysenterCs = 0x174, kMsrSysenterEsp = 0x175,
                        kMsrSysenterEip = 0x176;
constexpr std::uint32_t kCr4Tsd = 1u << 2;

bool is_floating_point(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::x87:
    case InstructionClass::fwait:
    case InstructionClass::fxsave:
    case InstructionClass::fxrstor:
    case InstructionClass::sse_fp:
    case InstructionClass::ldmxcsr:
    case InstructionClass::stmxcsr:
      return true;
    default:
      return false;
  }
}

/// PUNPCKLBW, PUNPCKLWD and PUNPCKLDQ of an MMX register and memory (SDM vol. 2): of the latter the
/// engine reads eight bytes.
bool unpacks_four_bytes(const DecodedInstruction& info) {
  return info.opcode_map == 1 && info.opcode >= 0x60 && info.opcode <= 0x62 && !info.register_form;
}

}  // namespace

bool Machine::emulated(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::hlt:
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::icebp:
    case InstructionClass::sysenter:
    case InstructionClass::sysexit:
    case InstructionClass::rsm:
    case InstructionClass::cpuid:
    case InstructionClass::rdtsc:
    case InstructionClass::rdpmc:
    case InstructionClass::rdmsr:
    case InstructionClass::wrmsr:
    case InstructionClass::mov_to_dr:
    case InstructionClass::mov_from_dr:
    case InstructionClass::mov_test_register:
    case InstructionClass::smsw:
      return true;
    default:
      return is_floating_point(kind);
  }
}

/// The engine must not execute the instruction in flight.
bool Machine::is_made_here() {
  switch (flight_.info->kind) {
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
      return transfers_here() || wraps_between_parts();
    case InstructionClass::iret:
      return transfers_here();
    case InstructionClass::ret:
    case InstructionClass::far_return:
      return returns_here();
    case InstructionClass::load_far_pointer:
    case InstructionClass::bound:
      return wraps_between_parts();
    case InstructionClass::push_segment:
      return pushes_before_a_page();
    case InstructionClass::mmx:
      return unpacks_four_bytes(*flight_.info);
    default:
      return emulated(flight_.info->kind);
  }
}

void Machine::emulate() {
  const DecodedInstruction& info = *flight_.info;
  if (is_floating_point(info.kind)) check_fpu_available(info.kind);
  if (info.kind == InstructionClass::far_jump || info.kind == InstructionClass::far_call ||
      info.kind == InstructionClass::iret) {
    emulate_system_transfer();
    return;
  }
  prepare_operands();
  if (cpu_.traits.sixteen_bit && emulated_on_8088()) {
    emulate_on_8088();
    return;
  }
  if (cpu_.traits.coprocessor_by_ports && info.kind == InstructionClass::x87) {
    emulate_coprocessor_cycles();
    return;
  }
  switch (info.kind) {
    case InstructionClass::ret:
      emulate_near_return();
      return;
    case InstructionClass::far_return:
      emulate_far_return();
      return;
    case InstructionClass::push_segment:
      emulate_segment_push();
      break;
    case InstructionClass::bound:
      emulate_bound();
      break;
    case InstructionClass::load_far_pointer:
      emulate_load_far_pointer();
      break;
    case InstructionClass::hlt:
      require_ring0();
      if (cpu_.sink != nullptr) cpu_.sink->halted(cpu_.position);
      cpu_.halted = true;
      break;
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::icebp:
      emulate_software_interrupt();
      return;
    case InstructionClass::sysenter:
      emulate_sysenter();
      return;
    case InstructionClass::sysexit:
      emulate_sysexit();
      return;
    case InstructionClass::rsm:
      emulate_rsm();
      return;
    case InstructionClass::cpuid:
      emulate_cpuid();
      break;
    case InstructionClass::rdtsc:
      if ((cpu_.engine.cr(4) & kCr4Tsd) != 0) require_ring0();
      emulate_internal_read(InternalRead::Op::rdtsc);
      break;
    case InstructionClass::rdpmc:
      emulate_internal_read(InternalRead::Op::rdpmc);
      break;
    case InstructionClass::rdmsr:
      require_ring0();
      emulate_internal_read(InternalRead::Op::rdmsr);
      break;
    case InstructionClass::wrmsr:
      require_ring0();
      cpu_.environment.internal_read(InternalRead::Op::wrmsr, cpu_.position);
      set_msr(cpu_.engine.gpr(kEcx),
              std::uint64_t{cpu_.engine.gpr(kEdx)} << 32 | cpu_.engine.gpr(kEax));
      break;
    case InstructionClass::mov_to_dr:
      require_ring0();
      write_debug_register(info.reg_field, cpu_.engine.gpr(info.rm_field));
      break;
    case InstructionClass::mov_from_dr:
      require_ring0();
      cpu_.engine.set_gpr(info.rm_field, read_debug_register(info.reg_field));
      break;
    case InstructionClass::mov_test_register:
      require_ring0();
      break;
    case InstructionClass::smsw:
      // SDM vol. 2, SMSW, leaves the upper half open; the recorded machines copy all of CR0, the
      // engine leaves it as it was.
      cpu_.engine.set_gpr(info.rm_field, cpu_.engine.cr(0));
      break;
    case InstructionClass::x87:
    case InstructionClass::fwait:
    case InstructionClass::fxsave:
    case InstructionClass::fxrstor:
    case InstructionClass::sse_fp:
    case InstructionClass::ldmxcsr:
    case InstructionClass::stmxcsr:
    case InstructionClass::mmx:
      emulate_floating_point();
      break;
    default:
      throw InternalError("an instruction class is announced as emulated but is not");
  }
  complete_emulated();
}

/// Behind the instruction. From the 386 on EIP goes on from FFFF to 10000, where the next fetch is
/// refused, in 16-bit code too.
std::uint32_t Machine::next_eip() const {
  const std::uint32_t next = cpu_.engine.eip() + flight_.info->length;
  return cpu_.traits.sixteen_bit ? next & 0xffff : next;
}

void Machine::move_stack_pointer(std::uint32_t by) {
  const std::uint32_t mask = cpu_.stack_bits(), esp = cpu_.engine.gpr(kEsp);
  cpu_.engine.set_gpr(kEsp, (esp & ~mask) | ((esp + by) & mask));
}

void Machine::complete_emulated() {
  const std::uint32_t flags = cpu_.engine.system_flags();
  cpu_.engine.set_eip(next_eip());
  cpu_.engine.clear_inhibit();
  report_completed();
  retire();
  if ((flags & kFlagTf) != 0) debug_pending_ |= kDr6Step;
  if (debug_pending_ != 0) take_debug_trap();
}

std::optional<std::uint64_t> Machine::find_msr(std::uint32_t index) const {
  const auto it = std::lower_bound(msrs_.begin(), msrs_.end(), index,
                                   [](const Msr& m, std::uint32_t i) { return m.index < i; });
  if (it == msrs_.end() || it->index != index) return std::nullopt;
  return it->value;
}

void Machine::set_msr(std::uint32_t index, std::uint64_t value) {
  const auto it = std::lower_bound(msrs_.begin(), msrs_.end(), index,
                                   [](const Msr& m, std::uint32_t i) { return m.index < i; });
  if (it != msrs_.end() && it->index == index) {
    it->value = value;
  } else {
    msrs_.insert(it, Msr{index, value});
  }
}

void Machine::emulate_internal_read(InternalRead::Op op) {
  const std::optional<InternalRead> known = cpu_.environment.internal_read(op, cpu_.position);
  if (known) {
    cpu_.engine.set_gpr(kEax, known->eax);
    cpu_.engine.set_gpr(kEdx, known->edx);
    if (op == InternalRead::Op::rdmsr) {
      set_msr(cpu_.engine.gpr(kEcx), std::uint64_t{known->edx} << 32 | known->eax);
    }
    return;
  }
  if (op == InternalRead::Op::rdmsr && cpu_.engine.gpr(kEcx) != kMsrTsc) {
    if (const auto value = find_msr(cpu_.engine.gpr(kEcx))) {
      cpu_.engine.set_gpr(kEax, static_cast<std::uint32_t>(*value));
      cpu_.engine.set_gpr(kEdx, static_cast<std::uint32_t>(*value >> 32));
      return;
    }
  }
  char text[200];
  std::snprintf(text, sizeof text,
                "%s at EIP %08x needs a value that crosses no bus, and the recording has none left "
                "(import with --internal FILE)",
                internal_read_name(op), cpu_.engine.eip());
  throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, internal_read_name(op), "nothing"};
}

void Machine::emulate_cpuid() {
  if (const auto known = cpu_.environment.internal_read(InternalRead::Op::cpuid, cpu_.position)) {
    cpu_.engine.set_gpr(kEax, known->eax);
    cpu_.engine.set_gpr(kEbx, known->ebx);
    cpu_.engine.set_gpr(kEcx, known->ecx);
    cpu_.engine.set_gpr(kEdx, known->edx);
    return;
  }
  const std::uint32_t leaf = cpu_.engine.gpr(kEax);
  const CpuidLeaf* answer = nullptr;
  for (const CpuidLeaf& l : cpuid_) {
    if (l.leaf == leaf) answer = &l;
  }
  if (answer == nullptr && !cpuid_.empty()) {
    // SDM vol. 2, CPUID: beyond the highest leaf the data of the highest basic leaf is returned.
    for (const CpuidLeaf& l : cpuid_) {
      if (l.leaf < 0x80000000) answer = &l;
    }
  }
  if (answer == nullptr) {
    throw ReplayStopped{cpu_.position,
                        "CPUID needs the answers of the captured processor, which neither the "
                        "state dump nor the recording has (import with --internal FILE)",
                        ~std::uint64_t{0}, "CPUID", "nothing"};
  }
  cpu_.engine.set_gpr(kEax, answer->eax);
  cpu_.engine.set_gpr(kEbx, answer->ebx);
  cpu_.engine.set_gpr(kEcx, answer->ecx);
  cpu_.engine.set_gpr(kEdx, answer->edx);
}

void Machine::emulate_sysenter() {
  // SDM vol. 2, SYSENTER.
  const std::uint32_t cs = static_cast<std::uint32_t>(find_msr(kMsrSysenterCs).value_or(0));
  if ((cpu_.engine.cr(0) & 1) == 0 || (cs & 0xfffc) == 0) throw CpuException{13, 0u, 0};
  report_completed();
  const std::uint32_t flags = cpu_.engine.eflags();
  cpu_.engine.set_eflags(flags & ~(kFlagVm | kFlagIf | kFlagRf));
  const auto selector = static_cast<std::uint16_t>(cs & 0xfffc);
  cpu_.engine.set_segment(kCs, {selector, 0, 0xffffffff, 0xc09b, false});
  cpu_.engine.set_segment(kSs,
                          {static_cast<std::uint16_t>(selector + 8), 0, 0xffffffff, 0xc093, false});
  cpu_.engine.set_gpr(kEsp, static_cast<std::uint32_t>(find_msr(kMsrSysenterEsp).value_or(0)));
  cpu_.engine.set_eip(static_cast<std::uint32_t>(find_msr(kMsrSysenterEip).value_or(0)));
  finish_mode_switch(flags);
}

void Machine::emulate_sysexit() {
  // SDM vol. 2, SYSEXIT.
  const std::uint32_t cs = static_cast<std::uint32_t>(find_msr(kMsrSysenterCs).value_or(0));
  if ((cpu_.engine.cr(0) & 1) == 0 || (cs & 0xfffc) == 0 || (cpu_.engine.hflags() & kHfCpl) != 0) {
    throw CpuException{13, 0u, 0};
  }
  report_completed();
  const auto selector = static_cast<std::uint16_t>((cs & 0xfffc) + 16);
  cpu_.engine.set_segment(kCs,
                          {static_cast<std::uint16_t>(selector | 3), 0, 0xffffffff, 0xc0fb, false});
  cpu_.engine.set_segment(
      kSs, {static_cast<std::uint16_t>((selector + 8) | 3), 0, 0xffffffff, 0xc0f3, false});
  cpu_.engine.set_gpr(kEsp, cpu_.engine.gpr(kEcx));
  cpu_.engine.set_eip(cpu_.engine.gpr(kEdx));
  finish_mode_switch(cpu_.engine.system_flags());
}

void Machine::finish_mode_switch(std::uint32_t flags_before) {
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.code.forget();
  retire();
  if ((flags_before & kFlagTf) == 0) return;
  debug_pending_ |= kDr6Step;
  take_debug_trap();
}

/// PUSH of a segment register with a 32-bit operand writes two bytes of its slot; the engine writes
/// four. Where these lie in one page the other two are put back (report_completed()).
bool Machine::pushes_before_a_page() const {
  if (flight_.info->operand_bytes != 4) return false;
  return (cpu_.linear_of(flight_.info->operands[0]) & kPageMask) + flight_.info->operand_bytes >
         kPageSize;
}

void Machine::emulate_segment_push() {
  std::array<std::uint8_t, 2> bytes{};
  const std::uint16_t selector = cpu_.engine.segment_selector(flight_.info->reg_field);
  std::memcpy(bytes.data(), &selector, sizeof selector);
  write_stores(bytes);
  move_stack_pointer(static_cast<std::uint32_t>(flight_.info->stack_delta));
}

void Machine::emulate_software_interrupt() {
  const DecodedInstruction& info = *flight_.info;
  const std::uint32_t flags = cpu_.engine.eflags();
  std::uint8_t vector = 3;
  bool software = true;
  if (info.kind == InstructionClass::int_n) {
    vector = static_cast<std::uint8_t>(info.immediate);
    require_iopl_in_v86();
  } else if (info.kind == InstructionClass::into) {
    if ((flags & kFlagOf) == 0) {
      complete_emulated();
      return;
    }
    vector = 4;
  } else if (info.kind == InstructionClass::icebp) {
    vector = 1;
    software = false;  // SDM vol. 2, INT1: no privilege check of the gate
  }
  const std::uint32_t next = next_eip();
  const DecodedInstruction completed = info;  // the handler may decode over this slot
  const bool delivered =
      raise({vector, std::nullopt, 0}, next,
            software ? DeliveredEvent::Kind::software : DeliveredEvent::Kind::exception);
  if (!delivered) return;
  flight_.info = &completed;
  report_completed();
  retire();
  flight_.info = nullptr;
}

void Machine::require_ring0() const {
  if ((cpu_.engine.cr(0) & 1) != 0 && (cpu_.engine.hflags() & kHfCpl) != 0)
    throw CpuException{13, 0u, 0};
}

/// SDM vol. 3, 20.2.3: virtual-8086 tasks need IOPL 3 for INT n, PUSHF, POPF and IRET.
void Machine::require_iopl_in_v86() const {
  const std::uint32_t flags = cpu_.engine.system_flags();
  if ((flags & kFlagVm) != 0 && (flags >> 12 & 3) != 3) throw CpuException{13, 0u, 0};
}

void Machine::check_fpu_available(InstructionClass kind) const {
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

bool Machine::in_string_copy() const {
  constexpr std::uint8_t kMovsb = 0xa4, kMovs = 0xa5;
  return flight_.info != nullptr && flight_.info->kind == InstructionClass::string &&
         flight_.info->opcode_map == 0 &&
         (flight_.info->opcode == kMovsb || flight_.info->opcode == kMovs);
}

bool Machine::in_port_input() const {
  return flight_.info != nullptr && flight_.info->kind == InstructionClass::ins;
}

bool Machine::in_floating_point_store() const {
  if (flight_.info == nullptr) return false;
  switch (flight_.info->kind) {
    case InstructionClass::x87:
    case InstructionClass::fxsave:
    case InstructionClass::sse:
    case InstructionClass::sse_fp:
    case InstructionClass::mmx:
      return true;
    default:
      return false;
  }
}

void Machine::read_operand(std::uint32_t linear, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const std::size_t n = std::min<std::size_t>(out.size(), kPageSize - (linear & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear}, Access::read, cpu_.user_mode());
    std::memcpy(out.data(), cpu_.memory.host(at), n);
    out = out.subspan(n);
    linear += static_cast<std::uint32_t>(n);
  }
}

/// An operand of at most four bytes, as a number.
std::uint32_t Machine::read_value(std::uint32_t linear, std::uint32_t size) {
  std::array<std::uint8_t, 4> bytes{};
  read_operand(linear, std::span(bytes).first(size));
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void Machine::write_stores(std::span<const std::uint8_t> bytes) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < flight_.store_count; ++i) {
    InFlight::Store& s = flight_.stores[i];
    s.size = static_cast<std::uint32_t>(std::min<std::size_t>(s.size, bytes.size()));
    if (s.size == 0) break;
    cpu_.memory.store(s.physical, bytes.first(s.size));
    bytes = bytes.subspan(s.size);
    ++used;
  }
  flight_.store_count = used;
}

void Machine::emulate_floating_point() {
  const DecodedInstruction& info = *flight_.info;
  const FpuForm form = fpu_->prepare(info);
  if (form.action == FpuForm::Action::unsupported) {
    throw ReplayStopped{cpu_.position, "a floating-point instruction that is not supported",
                        ~std::uint64_t{0}, "", ""};
  }
  FpuOperands operands;
  cpu_.engine.read_fx(fpu_->image());
  operands.code_selector = cpu_.engine.segment_selector(kCs);
  operands.code_offset = cpu_.engine.eip();
  operands.save_sse = (cpu_.engine.cr(4) & 0x200) != 0;
  if (form.gpr != kNoRegister) operands.gpr = cpu_.engine.gpr(form.gpr);
  // Compared into, or asked by FCMOVcc.
  const bool conditional = info.kind == InstructionClass::x87 && info.register_form;
  if (form.writes_eflags || conditional) operands.eflags = cpu_.engine.eflags();
  if (info.operand_count != 0) {
    const MemoryOperand& operand = info.operands[0];
    operands.data_selector = cpu_.engine.segment_selector(operand.segment);
    operands.data_offset = cpu_.offset_of(operand);
    if (operand.read) read_floating_operand(std::span(operands.memory).first(operand.size));
  }
  const FpuResult result = fpu_->execute(form, operands);
  switch (result.fault) {
    case FpuResult::Fault::none:
      break;
    case FpuResult::Fault::pending:
      throw CpuException{16, std::nullopt, 0};
    case FpuResult::Fault::simd:
      cpu_.engine.write_fx(fpu_->image());
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
  cpu_.engine.write_fx(fpu_->image());
  if (form.writes_gpr) cpu_.engine.set_gpr(form.gpr, operands.gpr);
  if (form.writes_eflags) cpu_.engine.set_eflags(operands.eflags);
  write_stores(std::span(operands.memory).first(result.store_bytes));
}

}  // namespace citcat
