#include "replay/machine/units/emulator.h"

#include <array>
#include <cstring>
#include <optional>

#include "events/machine/control_bits.h"
#include "formats/io/error.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/control_registers.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/early_quirks.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/extended_state.h"
#include "replay/machine/units/far_return.h"
#include "replay/machine/units/far_transfer.h"
#include "replay/machine/units/feature_gate.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/long_mode_transfer.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/near_transfer.h"
#include "replay/machine/units/newer_integers.h"
#include "replay/machine/units/operand_preparation.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/system_management.h"
#include "replay/machine/units/table_descriptor.h"
#include "x86/early_cpu_quirks.h"
#include "x86/host_code.h"

namespace citcat {

namespace {

constexpr std::uint32_t kFlagOf = 1u << 11;
constexpr std::uint8_t kBoundRange = 5;

/// True for MSRs whose value must be canonical on processors with long mode (SDM vol. 2, WRMSR).
bool holds_address(std::uint32_t msr) {
  switch (msr) {
    case kMsrSysenterEsp:
    case kMsrSysenterEip:
    case kMsrLongTarget:
    case kMsrLongTarget + 1:
    case kMsrFsBase:
    case kMsrGsBase:
    case kMsrKernelGsBase:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Emulator::emulate_sysenter() {
  // SDM vol. 2, SYSENTER.
  if (cpu_.long_mode()) return long_mode_.sysenter();
  const std::uint32_t cs =
      static_cast<std::uint32_t>(model_registers_.find_msr(kMsrSysenterCs).value_or(0));
  if ((cpu_.engine.cr(0) & 1) == 0 || (cs & 0xfffc) == 0) throw CpuException{13, 0u, 0};
  retirement_.report_completed();
  const std::uint32_t flags = cpu_.engine.eflags();
  cpu_.engine.set_eflags(flags & ~(kFlagVm | kFlagIf | kFlagRf));
  const auto selector = static_cast<std::uint16_t>(cs & 0xfffc);
  cpu_.engine.set_segment(kCs, {selector, 0, 0xffffffff, 0xc09b, false});
  cpu_.engine.set_segment(kSs,
                          {static_cast<std::uint16_t>(selector + 8), 0, 0xffffffff, 0xc093, false});
  cpu_.engine.set_gpr(
      kEsp, static_cast<std::uint32_t>(model_registers_.find_msr(kMsrSysenterEsp).value_or(0)));
  cpu_.engine.set_eip(
      static_cast<std::uint32_t>(model_registers_.find_msr(kMsrSysenterEip).value_or(0)));
  retirement_.finish_mode_switch(flags);
}

void Emulator::emulate_sysexit() {
  // SDM vol. 2, SYSEXIT.
  if (cpu_.long_mode()) return long_mode_.sysexit();
  const std::uint32_t cs =
      static_cast<std::uint32_t>(model_registers_.find_msr(kMsrSysenterCs).value_or(0));
  if ((cpu_.engine.cr(0) & 1) == 0 || (cs & 0xfffc) == 0 || (cpu_.engine.hflags() & kHfCpl) != 0) {
    throw CpuException{13, 0u, 0};
  }
  retirement_.report_completed();
  const auto selector = static_cast<std::uint16_t>((cs & 0xfffc) + 16);
  cpu_.engine.set_segment(kCs,
                          {static_cast<std::uint16_t>(selector | 3), 0, 0xffffffff, 0xc0fb, false});
  cpu_.engine.set_segment(
      kSs, {static_cast<std::uint16_t>((selector + 8) | 3), 0, 0xffffffff, 0xc0f3, false});
  cpu_.engine.set_gpr(kEsp, cpu_.engine.gpr(kEcx));
  cpu_.engine.set_eip(cpu_.engine.gpr(kEdx));
  retirement_.finish_mode_switch(cpu_.engine.system_flags());
}

void Emulator::emulate_segment_push() {
  std::array<std::uint8_t, 2> bytes{};
  const std::uint16_t selector = cpu_.engine.segment_selector(flight_.info->reg_field);
  std::memcpy(bytes.data(), &selector, sizeof selector);
  operands_.write_stores(bytes);
  cpu_.move_stack_pointer(flight_.info->stack_delta);
}

void Emulator::emulate_software_interrupt() {
  const DecodedInstruction& info = *flight_.info;
  const std::uint32_t flags = cpu_.engine.eflags();
  std::uint8_t vector = 3;
  bool software = true;
  if (info.kind == InstructionClass::int_n) {
    vector = static_cast<std::uint8_t>(info.immediate);
    cpu_.require_iopl_in_v86();
  } else if (info.kind == InstructionClass::into) {
    if ((flags & kFlagOf) == 0) {
      retirement_.complete_emulated();
      return;
    }
    vector = 4;
  } else if (info.kind == InstructionClass::icebp) {
    vector = 1;
    software = false;  // SDM vol. 2, INT1: no privilege check of the gate
  }
  const std::uint64_t next = retirement_.next_ip();
  const DecodedInstruction completed = info;  // the handler may decode over this slot
  const bool delivered =
      delivery_.raise({vector, std::nullopt, 0}, next,
                      software ? DeliveredEvent::Kind::software : DeliveredEvent::Kind::exception);
  if (!delivered) return;
  flight_.info = &completed;
  retirement_.report_completed();
  retirement_.retire();
  flight_.info = nullptr;
}

/// SDM vol. 2, BOUND.
void Emulator::emulate_bound() {
  const MemoryOperand& bounds = flight_.info->operands[0];
  const auto extended = [&](std::uint32_t value) {
    return bounds.size == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int16_t>(value);
  };
  const std::int32_t index = extended(cpu_.engine.gpr(flight_.info->reg_field));
  if (index < extended(operands_.part(bounds, 0)) || index > extended(operands_.part(bounds, 1))) {
    throw CpuException{kBoundRange, std::nullopt, 0};
  }
}

// ---------------------------------------------------------------------------------------------
// The table

/// What is made here of a class of instructions.
struct Emulator::Row {
  /// What emulate() does around it.
  enum class Around : std::uint8_t {
    nothing,   ///< it prepares its operands itself, and retires itself
    prepared,  ///< the operands are prepared; it retires itself
    whole,     ///< the operands are prepared, and it is retired when it returns
  };
  InstructionClass kind;
  void (Emulator::*make)();
  Around around = Around::whole;
  bool (Emulator::*applies)() const = nullptr;  ///< null: always
};

const Emulator::Row* Emulator::row_of(InstructionClass kind) {
  using enum Row::Around;
  using Class = InstructionClass;
  static constexpr Row kRows[] = {
      {Class::far_jump, &Emulator::transfer, nothing, &Emulator::transfers},
      {Class::far_call, &Emulator::transfer, nothing, &Emulator::transfers},
      {Class::iret, &Emulator::transfer, nothing, &Emulator::transfers},
      {Class::ret, &Emulator::return_near, prepared, &Emulator::returns},
      {Class::far_return, &Emulator::return_far, prepared, &Emulator::returns},
      {Class::int_n, &Emulator::emulate_software_interrupt, prepared},
      {Class::int3, &Emulator::emulate_software_interrupt, prepared},
      {Class::into, &Emulator::emulate_software_interrupt, prepared},
      {Class::icebp, &Emulator::emulate_software_interrupt, prepared},
      {Class::sysenter, &Emulator::emulate_sysenter, prepared},
      {Class::sysexit, &Emulator::emulate_sysexit, prepared},
      {Class::syscall, &Emulator::syscall, nothing},
      {Class::sysret, &Emulator::sysret, nothing},
      {Class::swapgs, &Emulator::swap_gs},
      {Class::segment_base, &Emulator::access_segment_base},
      {Class::access_flag, &Emulator::set_access_flag},
      {Class::invpcid, &Emulator::invalidate_contexts},
      {Class::rdpid, &Emulator::read_processor_id},
      {Class::random, &Emulator::read_random},
      {Class::newer_integer, &Emulator::newer_integer, whole, &Emulator::counts_or_long_mode},
      {Class::rsm, &Emulator::leave_smm, prepared},
      {Class::bound, &Emulator::emulate_bound, whole, &Emulator::wraps},
      {Class::load_far_pointer, &Emulator::load_far_pointer, whole, &Emulator::wraps},
      {Class::in, &Emulator::read_port, whole, &Emulator::spares_engine},
      {Class::out, &Emulator::write_port, whole, &Emulator::spares_engine},
      {Class::mov_to_segment, &Emulator::load_segment, whole, &Emulator::loads_segment},
      {Class::pop_segment, &Emulator::load_segment, whole, &Emulator::loads_segment},
      {Class::push_segment, &Emulator::emulate_segment_push, whole,
       &Emulator::pushes_before_a_page},
      {Class::hlt, &Emulator::halt},
      {Class::cpuid, &Emulator::cpuid},
      {Class::rdtsc, &Emulator::rdtsc},
      {Class::rdtscp, &Emulator::rdtscp},
      {Class::rdpmc, &Emulator::rdpmc},
      {Class::rdmsr, &Emulator::rdmsr},
      {Class::wrmsr, &Emulator::wrmsr},
      {Class::mov_to_cr, &Emulator::write_control_register, whole,
       &Emulator::writes_control_register},
      {Class::mov_from_cr, &Emulator::read_control_register, whole,
       &Emulator::reads_control_register},
      {Class::mov_to_dr, &Emulator::write_debug_register},
      {Class::mov_from_dr, &Emulator::read_debug_register},
      {Class::smsw, &Emulator::store_machine_status},
      {Class::x87, &Emulator::floating_point},
      {Class::fwait, &Emulator::floating_point},
      {Class::fxsave, &Emulator::floating_point},
      {Class::fxrstor, &Emulator::floating_point},
      {Class::xgetbv, &Emulator::xgetbv},
      {Class::xsetbv, &Emulator::xsetbv},
      {Class::xsave, &Emulator::xsave},
      {Class::xrstor, &Emulator::xrstor},
      {Class::sse_fp, &Emulator::floating_point},
      {Class::ldmxcsr, &Emulator::floating_point},
      {Class::stmxcsr, &Emulator::floating_point},
      {Class::mmx, &Emulator::floating_point, whole, &Emulator::is_mmx_of_host},
      {Class::sse, &Emulator::floating_point, whole, &Emulator::is_sse_of_host},
  };
  static constexpr std::size_t kClasses = static_cast<std::size_t>(Class::stmxcsr) + 1;
  static constexpr std::array<const Row*, kClasses> kByClass = [] {
    std::array<const Row*, kClasses> by_class{};
    for (const Row& row : kRows) by_class[static_cast<std::size_t>(row.kind)] = &row;
    return by_class;
  }();
  return kByClass[static_cast<std::size_t>(kind)];
}

bool Emulator::is_made_here() const {
  const Row* const row = row_of(flight_.info->kind);
  return row != nullptr && (row->applies == nullptr || (this->*row->applies)());
}

void Emulator::emulate() {
  ++cpu_.stats.emulated;
  const InstructionClass kind = flight_.info->kind;
  const Row* const row = row_of(kind);
  const bool floating = row != nullptr && row->make == &Emulator::floating_point;
  if (floating && kind != InstructionClass::mmx) fpu_.check_available(kind);
  const bool far_return = kind == InstructionClass::far_return && cpu_.long_mode();
  if (row != nullptr && (row->around == Row::Around::nothing || far_return)) {
    return (this->*row->make)();
  }
  preparation_.prepare();
  if (cpu_.traits.sixteen_bit && early_.emulated_on_8088()) return early_.emulate();
  if (cpu_.traits.coprocessor_by_ports && kind == InstructionClass::x87) {
    return early_.emulate_coprocessor_cycles();
  }
  if (row == nullptr) {
    throw InternalError("an instruction class is announced as emulated but is not");
  }
  (this->*row->make)();
  if (row->around == Row::Around::whole) retirement_.complete_emulated();
}

bool Emulator::transfers() const {
  return cpu_.long_mode() || transfers_.transfers_here() || operands_.wraps_between_parts() ||
         returns_from_interrupt();
}

bool Emulator::returns_from_interrupt() const {
  return flight_.info->kind == InstructionClass::iret && spares_engine() &&
         returns_.returns_from_interrupt();
}

bool Emulator::returns() const {
  const bool far = flight_.info->kind == InstructionClass::far_return;
  return (far && cpu_.long_mode()) || returns_.returns_here();
}

/// TZCNT and LZCNT are BSF and BSR to the engine, whatever the processor.
bool Emulator::counts_or_long_mode() const {
  return cpu_.traits.has_long_mode || flight_.info->is(Operation::tzcnt) ||
         flight_.info->is(Operation::lzcnt);
}

bool Emulator::wraps() const { return operands_.wraps_between_parts(); }

bool Emulator::pushes_before_a_page() const { return preparation_.pushes_before_a_page(); }

/// Where ordinary code runs in the fast tier, the engine has to translate what it makes in between:
/// some 150,000 instructions of the host's for one that runs once. With everything on the engine of
/// record it makes these itself, and is what they are held to.
bool Emulator::spares_engine() const { return cpu_.by_blocks; }

/// Not SS: interrupts wait after it, which the engine keeps. Nor a slot across pages, of which two
/// bytes are told and all are asked for.
bool Emulator::loads_segment() const {
  const DecodedInstruction& info = *flight_.info;
  if (!spares_engine() || !cpu_.protected_mode() || cpu_.long_mode() || info.reg_field == kSs) {
    return false;
  }
  return info.kind != InstructionClass::pop_segment ||
         cpu_.linear_of(info.operands[0]).offset_in_page() + info.operand_bytes <= kPageSize;
}

bool Emulator::writes_control_register() const {
  return cpu_.traits.has_long_mode || (spares_engine() && flight_.info->reg_field == 3);
}

bool Emulator::reads_control_register() const {
  return cpu_.traits.has_long_mode || spares_engine();
}

/// PUNPCKLBW, PUNPCKLWD and PUNPCKLDQ of an MMX register and memory (SDM vol. 2): of the latter the
/// engine reads eight bytes. And those with which it takes REX for part of the number of an MMX
/// register (found on a host, docs/silicon.md).
bool Emulator::is_mmx_of_host() const {
  const DecodedInstruction& info = *flight_.info;
  if (info.opcode_map != 1 || info.is(Operation::movq2dq) || info.is(Operation::movdq2q))
    return true;
  return info.row->operands[1] == OperandForm::Qd && !info.register_form;
}

/// What SSE and SSE2 have, which every host has; except for the one store that is made byte by
/// byte. Of what came later, what the host has and what changes nothing but a vector that an
/// operand names. And PHADDW and its like, which the engine makes wrongly of a register and itself
/// (the same host).
bool Emulator::is_sse_of_host() const {
  const DecodedInstruction& info = *flight_.info;
  if (spares_engine() && info.opcode_map == 1 && !info.is(Operation::maskmovdqu)) return true;
  const bool changes_vector =
      info.row->operands[0] == OperandForm::Vx && info.row->operands[1] >= OperandForm::Wb &&
      info.row->operands[1] <= OperandForm::Wx && info.row->access != OperandAccess::reads;
  if (spares_engine() && changes_vector && host_has(info)) return true;
  switch (info.row->operation) {
    case Operation::phaddw:
    case Operation::phaddd:
    case Operation::phaddsw:
    case Operation::phsubw:
    case Operation::phsubd:
    case Operation::phsubsw:
      return true;
    default:
      return false;
  }
}

// ---------------------------------------------------------------------------------------------
// Its rows

void Emulator::transfer() {
  if (cpu_.long_mode()) return long_mode_.transfer();
  if (!returns_from_interrupt()) return transfers_.transfer();
  preparation_.prepare();
  returns_.return_from_interrupt();
}

void Emulator::return_near() { near_.return_near(); }

void Emulator::return_far() { cpu_.long_mode() ? long_mode_.transfer() : returns_.return_far(); }

void Emulator::load_far_pointer() { segments_.load_far_pointer(); }

void Emulator::load_segment() { segments_.load_segment(); }

void Emulator::read_port() { ports_.in(); }

void Emulator::write_port() { ports_.out(); }

void Emulator::halt() {
  cpu_.require_ring0();
  cpu_.audience.halted(cpu_.position);
  cpu_.halted = true;
}

void Emulator::leave_smm() { smm_.leave_handler(); }

void Emulator::cpuid() {
  model_registers_.cpuid();
  features_.take();
}

void Emulator::rdtsc() {
  if ((cpu_.engine.cr(4) & kCr4Tsd) != 0) cpu_.require_ring0();
  model_registers_.read_internal(InternalRead::Op::rdtsc);
}

void Emulator::rdtscp() {
  if ((cpu_.engine.cr(4) & kCr4Tsd) != 0) cpu_.require_ring0();
  model_registers_.read_internal(InternalRead::Op::rdtscp);
}

void Emulator::syscall() {
  // Outside 64-bit mode AMD's processors alone have it.
  if (!cpu_.bits64() && !model_registers_.is_of_amd()) throw CpuException{6, std::nullopt, 0};
  if (!cpu_.long_mode()) {
    throw ReplayStopped{cpu_.position,
                        "SYSCALL of an AMD processor outside long mode, which is not executed "
                        "(docs/long-mode.md)"};
  }
  long_mode_.syscall();
}

void Emulator::sysret() { long_mode_.sysret(); }

void Emulator::swap_gs() {
  cpu_.require_ring0();
  const std::uint64_t base = cpu_.engine.wide().segment_base(kGs);
  cpu_.engine.wide().set_segment_base(kGs, model_registers_.value_of(kMsrKernelGsBase));
  model_registers_.set_msr(kMsrKernelGsBase, base);
}

/// SDM vol. 2, RDFSBASE and WRFSBASE.
void Emulator::access_segment_base() {
  if ((cpu_.engine.cr(4) & kCr4FsGsBase) == 0) throw CpuException{6, std::nullopt, 0};
  const DecodedInstruction& info = *flight_.info;
  const int segment = info.is(Operation::rdfsbase) || info.is(Operation::wrfsbase) ? kFs : kGs;
  const bool writes = info.is(Operation::wrfsbase) || info.is(Operation::wrgsbase);
  std::uint64_t value =
      writes ? cpu_.engine.wide().gpr(info.rm_field) : cpu_.engine.wide().segment_base(segment);
  if ((info.rex & kRexW) == 0) value = static_cast<std::uint32_t>(value);
  if (!writes) return cpu_.engine.wide().set_gpr(info.rm_field, value);
  if (!CpuContext::is_canonical(value)) throw CpuException{13, 0u, 0};
  cpu_.engine.wide().set_segment_base(segment, value);
}

/// SDM vol. 2, STAC and CLAC.
void Emulator::set_access_flag() {
  const std::uint32_t flags = cpu_.engine.eflags();
  if ((flags & kFlagVm) != 0 || cpu_.cpl() != 0) throw CpuException{6, std::nullopt, 0};
  const bool sets = flight_.info->is(Operation::stac);
  cpu_.engine.set_eflags(sets ? flags | kFlagAc : flags & ~kFlagAc);
}

/// SDM vol. 2, INVPCID: the register says what is dropped, memory of which context and page.
void Emulator::invalidate_contexts() {
  enum Type : std::uint64_t { kPage, kContext, kAll, kAllButGlobal };
  constexpr std::uint64_t kContextBits = 0xfff;
  const DecodedInstruction& info = *flight_.info;
  const LinearAddr at = cpu_.linear_of(info.operands[0]);
  const std::uint64_t context = operands_.read_wide_value(at, 8);
  const std::uint64_t address = operands_.read_wide_value(cpu_.onward(at, 8), 8);
  const std::uint64_t type =
      cpu_.bits64() ? cpu_.engine.wide().gpr(info.reg_field) : cpu_.engine.gpr(info.reg_field);
  const bool has_contexts = (cpu_.engine.cr(4) & kCr4Pcide) != 0;
  const bool names_context = type == kPage || type == kContext;
  if (type > kAllButGlobal || (context & ~kContextBits) != 0 ||
      (names_context && !has_contexts && context != 0) ||
      (type == kPage && !CpuContext::is_canonical(address))) {
    throw CpuException{13, 0u, 0};
  }
  const auto number = static_cast<std::uint16_t>(context);
  if (type == kPage) cpu_.mmu.invalidate_page_of(LinearAddr{address}, number);
  if (type == kContext) cpu_.mmu.invalidate_context(number);
  if (type == kAll) cpu_.mmu.flush_all();
  if (type == kAllButGlobal) cpu_.mmu.invalidate_contexts();
  cpu_.code.forget();
  cpu_.engine.flush_tlb();
}

/// SDM vol. 2, RDPID.
void Emulator::read_processor_id() {
  const std::optional<std::uint64_t> id = model_registers_.find_msr(kMsrTscAux);
  if (!id) {
    throw ReplayStopped{cpu_.position,
                        "RDPID needs the MSR TSC_AUX (C0000103), which neither the state dump has "
                        "nor the program has set"};
  }
  cpu_.engine.wide().set_gpr(flight_.info->rm_field, static_cast<std::uint32_t>(*id));
}

/// SDM vol. 2, RDRAND and RDSEED.
void Emulator::read_random() {
  const DecodedInstruction& info = *flight_.info;
  const bool seed = info.is(Operation::rdseed);
  const InternalRead known =
      model_registers_.random(seed ? InternalRead::Op::rdseed : InternalRead::Op::rdrand);
  cpu_.set_low_part(info.rm_field, known.value(), info.operand_bytes);
  const std::uint32_t others = cpu_.engine.eflags() & ~kArithmeticFlags;
  cpu_.engine.set_eflags(others | (known.ecx & kCf));
}

void Emulator::newer_integer() { integers_.execute(); }

void Emulator::write_control_register() { control_.write(); }

void Emulator::read_control_register() { control_.read(); }

void Emulator::rdpmc() { model_registers_.read_internal(InternalRead::Op::rdpmc); }

void Emulator::rdmsr() {
  cpu_.require_ring0();
  model_registers_.read_internal(InternalRead::Op::rdmsr);
}

void Emulator::wrmsr() {
  cpu_.require_ring0();
  const bool wide = cpu_.traits.has_long_mode;
  const std::uint32_t msr = cpu_.engine.gpr(kEcx);
  const std::uint64_t value = std::uint64_t{cpu_.engine.gpr(kEdx)} << 32 | cpu_.engine.gpr(kEax);
  if (wide && holds_address(msr) && !CpuContext::is_canonical(value)) {
    throw CpuException{13, 0u, 0};
  }
  model_registers_.write();
  if (!wide) return;
  if (msr == kMsrEfer) control_.write_efer(value);
  if (msr == kMsrFsBase) cpu_.engine.wide().set_segment_base(kFs, value);
  if (msr == kMsrGsBase) cpu_.engine.wide().set_segment_base(kGs, value);
}

void Emulator::write_debug_register() {
  cpu_.require_ring0();
  const std::uint64_t value = cpu_.bits64() ? cpu_.engine.wide().gpr(flight_.info->rm_field)
                                            : cpu_.engine.gpr(flight_.info->rm_field);
  constexpr unsigned kStatus = 6;
  if (flight_.info->reg_field >= kStatus && value >> 32 != 0) throw CpuException{13, 0u, 0};
  debug_.write(flight_.info->reg_field, value);
}

void Emulator::read_debug_register() {
  cpu_.require_ring0();
  const std::uint64_t value = debug_.read(flight_.info->reg_field);
  cpu_.engine.wide().set_gpr(flight_.info->rm_field,
                             cpu_.bits64() ? value : static_cast<std::uint32_t>(value));
}

/// SDM vol. 2, SMSW, leaves the upper half open; the recorded machines copy all of CR0, the engine
/// leaves it as it was.
void Emulator::store_machine_status() {
  const bool wide = flight_.info->operand_bytes == 8;
  cpu_.engine.wide().set_gpr(flight_.info->rm_field,
                             wide ? cpu_.engine.wide().cr(0) : cpu_.engine.cr(0));
}

void Emulator::floating_point() { fpu_.execute(); }

void Emulator::xgetbv() { extended_state_.get(); }

void Emulator::xsetbv() { extended_state_.set(); }

void Emulator::xsave() { extended_state_.save(); }

void Emulator::xrstor() { extended_state_.restore(); }

}  // namespace citcat
