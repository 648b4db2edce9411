#include "replay/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "formats/error.h"
#include "replay/host_fpu.h"

namespace citcat {

namespace {

constexpr std::uint32_t kFlagVm = 1u << 17, kFlagRf = 1u << 16;

/// Address pins of each processor: 8088 20, 286 24, later 32 (their data sheets).
unsigned address_pins(CpuModel model) {
  switch (model) {
    case CpuModel::i8088:
      return 20;
    case CpuModel::i286:
      return 24;
    default:
      return 32;
  }
}

}  // namespace

Machine::Machine(CpuModel model, const BusModel& bus, Environment& environment, Sink* sink,
                 ExecutionPath path)
    : model_(model),
      environment_(environment),
      sink_(sink),
      by_blocks_(path == ExecutionPath::blocks && model != CpuModel::i8088 &&
                 model != CpuModel::i286 &&
                 (sink == nullptr || sink->detail() != Detail::accesses)),
      compares_(by_blocks_ && sink != nullptr && sink->detail() == Detail::comparison),
      engine_(model, by_blocks_ ? HookMode::blocks : HookMode::instructions, *this),
      memory_(engine_, bus.address_mask, address_pins(model)),
      mmu_(engine_, memory_, *this) {
  fpu_ = std::make_unique<HostFpu>();
  sixteen_bit_ = model == CpuModel::i8088 || model == CpuModel::i286;
  wants_reads_ = sink_ != nullptr && sink_->wants_reads();
  if (sink_ == nullptr) return;
  detail_ = sink_->detail();
  block_receiver_ = sink_->block_receiver();
  if (!compares_) return;
  comparing_ = sink_->comparing();
  expects_stores_ = comparing_->expects_stores();
  defined_lines_.resize(kDefinedLines);
}

Machine::~Machine() = default;

void Machine::load(const CpuState& state, const MemoryImage& image) {
  loaded_ = state;
  memory_.load(image, state.ram_bytes);
  std::uint32_t mxcsr_mask = 0;
  std::memcpy(&mxcsr_mask, &state.fx[28], 4);
  fpu_->set_mxcsr_mask(mxcsr_mask);
  policy_.segment_push_is_16_bit = model_ != CpuModel::i8088 && model_ != CpuModel::i286;
  set_registers(state);
  resume_flag_ = (state.eflags & kFlagRf) != 0;
  has_a20_gate_ = (!sixteen_bit_ && model_ != CpuModel::i386) || state.a20_mask != 0xffffffff;
  mmu_.control_changed(true);
  mmu_.flush_all();
}

void Machine::set_registers(const CpuState& state) {
  msrs_ = state.msrs;
  cpuid_ = state.cpuid;
  tsc_ = state.tsc;
  dr_ = state.dr;
  find_breakpoints();
  for (int i = 0; i < 8; ++i) engine_.set_gpr(i, state.gpr[static_cast<std::size_t>(i)]);
  for (int i = 0; i < 6; ++i) engine_.set_segment(i, state.segment[static_cast<std::size_t>(i)]);
  engine_.set_ldtr(state.ldtr);
  engine_.set_tr(state.tr);
  engine_.set_gdtr(state.gdtr);
  engine_.set_idtr(state.idtr);
  engine_.set_eip(state.eip);
  const bool protected_16_bit = (state.cr0 & 1) != 0;
  engine_.set_eflags(sixteen_bit_ ? loaded_flags(model_, protected_16_bit, state.eflags)
                                  : state.eflags);
  engine_.set_cr(0, state.cr0);
  engine_.set_cr(2, state.cr2);
  engine_.set_cr(3, state.cr3);
  engine_.set_cr(4, state.cr4);
  // 8086-class and 286 machines gate A20 outside the processor; 20 pins wrap by themselves.
  engine_.set_a20_mask(model_ == CpuModel::i8088 ? 0xfffff : state.a20_mask);
  engine_.write_fx(state.fx);
  engine_.clear_inhibit();
  engine_.sync_mode();
  engine_.flush_tlb();
  halted_ = state.halted;
  a20_gate_.set_open(state.a20_mask == 0xffffffff);
  in_smm_ = state.in_smm;
  smbase_ = state.smbase;
  resume_flag_ = (state.eflags & kFlagRf) != 0;
  engine_.drop_resume_flag();
}

CpuState Machine::save() const {
  CpuState s = loaded_;
  for (int i = 0; i < 8; ++i) s.gpr[static_cast<std::size_t>(i)] = engine_.gpr(i);
  for (int i = 0; i < 6; ++i) s.segment[static_cast<std::size_t>(i)] = engine_.segment(i);
  s.ldtr = engine_.ldtr();
  s.tr = engine_.tr();
  s.gdtr = engine_.gdtr();
  s.idtr = engine_.idtr();
  s.eip = engine_.eip();
  s.eflags = flags();
  s.cr0 = engine_.cr(0);
  s.cr2 = engine_.cr(2);
  s.cr3 = engine_.cr(3);
  s.cr4 = engine_.cr(4);
  s.a20_mask = engine_.a20_mask();
  s.dr = dr_;
  s.msrs = msrs_;
  s.tsc = tsc_;
  s.halted = halted_;
  s.in_smm = in_smm_;
  s.smbase = smbase_;
  engine_.read_fx(s.fx);
  std::copy_n(loaded_.fx.begin() + 28, 4, s.fx.begin() + 28);  // MXCSR_MASK never changes
  return s;
}

/// EFLAGS with RF, which is not left to the engine: it clears RF only at the end of its blocks, the
/// processor after one instruction.
std::uint32_t Machine::flags() const {
  return (engine_.eflags() & ~kFlagRf) | (resume_flag_ ? kFlagRf : 0);
}

bool Machine::protected_mode() const {
  return (engine_.hflags() & kHfPe) != 0 && (engine_.system_flags() & kFlagVm) == 0;
}

CodeMode Machine::code_mode() const {
  return {(engine_.hflags() & kHfCs32) != 0, !protected_mode()};
}

// ---------------------------------------------------------------------------------------------
// The run loop

void Machine::run(Position until) {
  until_ = until;
  quiet_until_ = until.instruction;
  if (compares_) update_expected();
  try {
    while (!halted_ && !shut_down_) {
      if (!run_step()) return;
    }
  } catch (const UndefinedMemory& u) {
    engine_.set_eip(linear_ - engine_.segment_base(kCs));
    in_flight_ = false;
    char text[160];
    std::snprintf(text, sizeof text,
                  "read of memory that no evidence defines (%s, %u bytes at physical %08x)", u.what,
                  u.size, u.address.value);
    throw ReplayStopped{position_, text, ~std::uint64_t{0}, "", ""};
  }
}

bool Machine::run_step() {
  action_ = Action::none;
  segments_stale_ = true;
  block_page_ = kNoPage;
  surroundings_ = SurroundingsNumbers::kUnknown;
  const EngineStop stop = engine_.run();
  // The block to be translated quietly could not be translated: nothing else may be instead.
  if (retranslating_) finish_retranslation();
  const bool arranged = arranged_;
  if (arranged_) restore_arrangement();
  if (!lent_code_.empty()) forget_lent_code();
  if (taken_back_) {
    take_block_back();
    return true;
  }
  if (stop == EngineStop::translation_fault) {
    resolve_translation_fault();
    if (arranged && in_flight_ && resuming_) arrange();
    return action_ != Action::at_position;
  }
  if (stop != EngineStop::requested) {
    char text[160];
    std::snprintf(text, sizeof text, "the engine stopped: %s (EIP %08x)", engine_.failure().c_str(),
                  engine_.eip());
    throw ReplayStopped{position_, text, ~std::uint64_t{0}, "", ""};
  }
  if (action_ == Action::at_position) {
    engine_.set_eip(linear_ - engine_.segment_base(kCs));
    return false;
  }
  finish_run_step();
  return action_ != Action::at_position;
}

void Machine::finish_run_step() {
  switch (action_) {
    case Action::emulate:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      try {
        emulate();
      } catch (const NeedsMapping& n) {
        reads_to_skip_ = reads_told_;
        in_flight_ = false;
        memory_.ensure_mapped(n.page);
      } catch (const PageFault& f) {
        raise({14, f.error_code, f.address}, engine_.eip(), DeliveredEvent::Kind::exception);
      } catch (const CpuException& e) {
        raise(e, engine_.eip(), DeliveredEvent::Kind::exception);
      }
      break;
    case Action::raise:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      raise(exception_, engine_.eip(), DeliveredEvent::Kind::exception);
      break;
    case Action::map_page:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      memory_.ensure_mapped(page_to_map_);
      break;
    case Action::fix_flags:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      engine_.set_eflags(fix_flags_);
      break;
    case Action::native_fault:
      handle_native_fault();
      break;
    case Action::segment_end:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      deliver_segment_end();
      break;
    case Action::arrange:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      arrange();
      break;
    case Action::finish_repeat:
      finish_repeat();
      break;
    case Action::flush_tlb:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      engine_.flush_tlb();
      break;
    case Action::debug_trap:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      take_debug_trap();
      break;
    case Action::resume:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      break;
    case Action::step:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      engine_.step_once();
      break;
    case Action::repeat:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
      repeat_quickly();
      break;
    case Action::retranslate:
      retranslate();
      break;
    case Action::drop_blocks:
      drop_blocks();
      break;
    case Action::at_position:
    case Action::none:
      throw InternalError("the engine stopped without a reason");
  }
}

void Machine::request(Action action) {
  action_ = action;
  engine_.stop();
}

bool Machine::boundary_stop() {
  if (position_ >= until_) return true;
  return polling_ && environment_.wants_stop(position_);
}

// ---------------------------------------------------------------------------------------------
// The life of an instruction: prepared, executed by the engine, completed

/// Completes what was in flight, now that `linear` is to be executed. False when the run has to
/// stop first, or goes on with what is already prepared.
bool Machine::settle_before(std::uint32_t linear) {
  if (resuming_) {
    resuming_ = false;
    if (in_flight_ && linear == linear_) return false;
  }
  if (!in_flight_) return true;
  const bool arranged = arranged_;
  if (arranged) restore_arrangement();
  complete_in_flight(linear);
  if (action_ != Action::none) {  // flags to be set right first
    linear_ = linear;
    engine_.stop();
    return false;
  }
  if (arranged) {
    linear_ = linear;
    request(in_flight_ ? Action::finish_repeat : Action::resume);
    return false;
  }
  return !in_flight_;  // else the final count check of a REP
}

void Machine::on_instruction(std::uint32_t linear, std::uint32_t) {
  if (by_blocks_ && (runs_in_block(linear) || taken_back_)) return;
  surroundings_ = SurroundingsNumbers::kUnknown;
  if (!settle_before(linear)) return;
  if (compares_ && expects_now()) update_expected();
  if (debug_pending_ != 0 && !in_stack_shadow()) [[unlikely]] {
    linear_ = linear;
    request(Action::debug_trap);
    return;
  }
  const bool mid_repeat = position_.iteration != 0;
  if (!mid_repeat || linear == linear_) {
    if (boundary_stop()) {
      linear_ = linear;
      request(Action::at_position);
      return;
    }
  }
  linear_ = linear;
  try {
    prepare(linear);
  } catch (const PageFault& f) {
    exception_ = {14, f.error_code, f.address};
    request(Action::raise);
  } catch (const CpuException& e) {
    exception_ = e;
    request(Action::raise);
  } catch (const NeedsMapping& n) {
    reads_to_skip_ = reads_told_;
    page_to_map_ = n.page;
    in_flight_ = false;
    request(Action::map_page);
  }
}

bool Machine::repeat_count_is_zero() const {
  const std::uint32_t count = engine_.gpr(kEcx);
  return (info_->address_bits == 32 ? count : count & 0xffff) == 0;
}

void Machine::complete_in_flight(std::uint32_t next_linear) {
  const bool same = next_linear == linear_;
  if (iterating_) {
    // A store into the REP's own bytes makes the engine report the iteration again, unchanged.
    if (same && engine_.gpr(kEcx) == count_before_) {
      in_flight_ = false;
      iterating_ = false;
      return;
    }
    report_completed();
    iterating_ = false;
    ++position_.iteration;
    if (!same) {
      retire();
    } else if (repeat_count_is_zero()) {
      repeat_done_ = true;
    } else {
      in_flight_ = false;
    }
    return;
  }
  if (repeat_done_) {
    repeat_done_ = false;
    if (position_.iteration == 0) report_completed();  // a count of zero from the start
    retire();
    return;
  }
  if (same && !info_->control_flow) {
    // The same for any other instruction that stores into itself: it has not completed yet.
    reads_to_skip_ = reads_told_;
    in_flight_ = false;
    return;
  }
  report_completed();
  flags_after(*info_);
  retire();
}

void Machine::report_descriptors() {
  switch (info_->kind) {
    case InstructionClass::iret:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
      code_page_ = kNoPage;
      if (protected_mode()) mark_transfer_accessed();
      break;
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::ltr:
      report_watched_descriptor();
      break;
    default:
      break;
  }
}

void Machine::report_completed() {
  reads_to_skip_ = 0;
  if (restore_segment_push_) {
    restore_segment_push_ = false;
    const Store& s = stores_[0];
    std::memcpy(memory_.host(s.physical + s.size), &segment_push_upper_, 2);
  }
  const bool loads_flags =
      info_->kind == InstructionClass::iret || info_->kind == InstructionClass::popf;
  const bool quiet = compares_ && !expects_now() && !loads_flags;
  const bool told = sink_ != nullptr && (!quiet || expects_stores_);
  for (std::size_t i = 0; i < store_count_; ++i) {
    const Store& s = stores_[i];
    memory_.mark_defined(s.physical, s.size);
    if (compares_ && in_string_copy()) comparing_->copied(copied_from_, s.physical, s.size);
    if (told) {
      sink_->write(s.physical, {memory_.host(s.physical), s.size}, AccessKind::data, position_);
    }
  }
  if (info_->kind != InstructionClass::plain) report_descriptors();
  if (quiet) untold_flags_ = untold_flags_ + flag_effect_of(*info_, engine_.gpr(kEcx));
  Sink* const listener = quiet ? block_receiver_ : sink_;
  if (listener != nullptr) listener->instruction(executed(), position_);
}

/// The instruction or iteration in flight, as sinks see it.
ExecutedInstruction Machine::executed() const {
  ExecutedInstruction e;
  e.info = info_;
  e.linear = linear_;
  e.eip = linear_ - code_base_;
  e.physical = physical_;
  e.ea_count = ea_count_;
  for (unsigned i = 0; i < ea_count_; ++i) e.ea[i] = ea_[i];
  return e;
}

void Machine::retire() {
  in_flight_ = false;
  iterating_ = false;
  repeat_done_ = false;
  native_retries_ = 0;
  resume_flag_ = false;
  if (info_->ends_block || info_->kind != InstructionClass::plain) {
    segments_stale_ = true;
    after_system(*info_);
  }
  ++position_.instruction;
  position_.iteration = 0;
}

void Machine::discard_in_flight() {
  in_flight_ = false;
  native_retries_ = 0;
  iterating_ = false;
  repeat_done_ = false;
  restore_segment_push_ = false;
  reads_to_skip_ = 0;
  position_.iteration = 0;
}

void Machine::prepare(std::uint32_t linear) {
  code_base_ = engine_.segment_base(kCs);
  if (breaks_on_code_) [[unlikely]]
    check_code_breakpoints(linear);
  info_ = &fetch(linear);
  const InstructionInfo& info = *info_;
  store_count_ = 0;
  ea_count_ = 0;
  reads_told_ = 0;
  if (info.state != DecodeState::ok) {
    if (info.reason == InvalidReason::too_long) throw CpuException{13, 0u, 0};
    throw CpuException{6, std::nullopt, 0};
  }
  const std::uint32_t eip = linear - code_base_;
  const std::uint32_t limit = model_ == CpuModel::i8088 ? 0xffff : engine_.segment_limit(kCs);
  if (eip > limit || limit - eip < info.length - 1u) {
    if (model_ == CpuModel::i8088) {
      throw ReplayStopped{position_, "code that wraps around the end of its segment",
                          ~std::uint64_t{0}, "", ""};
    }
    throw CpuException{13, 0u, 0};
  }
  in_flight_ = true;
  hflags_before_ = engine_.hflags();
  wants_arrangement_ = (sixteen_bit_ || info.aliased || info.lock) && needs_canonical();
  if (info.is_repeated()) {
    count_before_ = engine_.gpr(kEcx);
    if (repeat_count_is_zero()) {
      repeat_done_ = true;
      if (wants_arrangement_) request(Action::finish_repeat);
      return;
    }
    iterating_ = true;
  }
  if (sixteen_bit_ && prepare_16_bit()) return;
  const bool far = info.kind == InstructionClass::far_jump ||
                   info.kind == InstructionClass::far_call || info.kind == InstructionClass::iret;
  if (emulated(info.kind) || (far && transfers_by_system_descriptor())) {
    wants_arrangement_ = false;
    request(Action::emulate);
    return;
  }
  fixes_flags_ = info.flag_rule != FlagRule::none && has_flag_rule(info, model_);
  if (fixes_flags_) keep_flag_inputs(info);
  try {
    prepare_operands();
    if (fixes_flags_ && flag_operand_) {
      flag_inputs_.memory = 0;
      std::array<std::uint8_t, 4> bytes{};
      read_operand(*flag_operand_, std::span(bytes).first(info.operand_bytes));
      std::memcpy(&flag_inputs_.memory, bytes.data(), 4);
    }
    if (wants_arrangement_) request(Action::arrange);
    quick_iterations_ = iterating_ ? count_quick_iterations() : 0;
    if (quick_iterations_ != 0) request(Action::repeat);
  } catch (...) {
    in_flight_ = false;
    iterating_ = false;
    throw;
  }
}

void Machine::prepare_operands() {
  const InstructionInfo& info = *info_;
  if (info.opcode_map == 1 && info.opcode <= 3) [[unlikely]]
    tell_looked_up_descriptor();
  const bool loads_selector =
      info.kind == InstructionClass::mov_to_segment || info.kind == InstructionClass::ltr ||
      info.kind == InstructionClass::lldt || info.kind == InstructionClass::in ||
      info.kind == InstructionClass::out || info.kind == InstructionClass::far_jump;
  if (info.operand_count == 0 && info.ea_count == 0 && !loads_selector) return;
  std::array<std::uint32_t, 6> bases;
  for (int i = 0; i < 6; ++i) bases[static_cast<std::size_t>(i)] = engine_.segment_base(i);
  const bool stack32 = (engine_.hflags() & kHfSs32) != 0;
  const std::uint64_t* regs = engine_.gprs();
  ea_count_ = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    ea_[i] = kt_address(info, i, linear_ - code_base_, regs, bases.data(), stack32);
  }
  if (info.kind == InstructionClass::invlpg) {
    invlpg_linear_ = operand_linear(info.operands[0], regs, bases.data(), stack32);
  }
  // An 80286 hands a coprocessor the operand's address and leaves the transfers to it.
  if (model_ != CpuModel::i286 || info.kind != InstructionClass::x87) {
    for_each_access(info, regs, bases.data(), stack32,
                    [&](const DataAccess& a) { access(a, info.operands[a.operand]); });
  }
  switch (info.kind) {
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::ltr:
    case InstructionClass::lldt:
      watch_descriptor();
      break;
    case InstructionClass::in:
    case InstructionClass::out:
    case InstructionClass::ins:
    case InstructionClass::outs:
      tell_port_permission();
      break;
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
      if (protected_mode()) tell_transfer_descriptors();
      break;
    default:
      break;
  }
  if (info.kind == InstructionClass::push_segment && info.operand_bytes == 4 &&
      policy_.segment_push_is_16_bit && store_count_ == 1) {
    std::memcpy(&segment_push_upper_, memory_.host(stores_[0].physical + stores_[0].size), 2);
    restore_segment_push_ = true;
  }
}

void Machine::access(const DataAccess& a, const MemoryOperand& operand) {
  if (sixteen_bit_ && a.offset + a.size > 0x10000 && model_ == CpuModel::i8088) {
    split_access(a, operand);
    return;
  }
  check_segment(a, operand);
  if (breaks_on_data_) [[unlikely]]
    check_data_breakpoints(a);
  if (a.write) {
    if (operand.conditional_write &&
        shift_writes_nothing(*info_, model_, static_cast<std::uint8_t>(engine_.gpr(kEcx)))) {
      return;
    }
    access_pages(a, Access::write, false);
  } else {
    // A read-modify-write asks for write permission before it reads: a page it may not write is
    // left without its accessed bit.
    access_pages(a, operand.write ? Access::write : Access::read, true);
  }
}

void Machine::access_pages(const DataAccess& a, Access kind, bool is_read) {
  const bool user = user_mode();
  std::uint32_t linear = a.linear;
  std::uint32_t left = a.size;
  while (left != 0) {
    const std::uint32_t n = std::min(left, kPageSize - (linear & kPageMask));
    const PhysAddr at = mmu_.translate(LinearAddr{linear}, kind, user);
    if (!memory_.is_mapped(at.page())) {
      if (is_read) throw UndefinedMemory{at, n, "data"};
      throw NeedsMapping{at.page()};
    }
    if (is_read) {
      if (wants_arrangement_) refuse_reading_own_code(at, n);
      if (!memory_.is_defined(at, n) && info_->kind != InstructionClass::fxrstor) {
        throw UndefinedMemory{at, n, "data"};
      }
      copied_from_ = at;
      if (tells_reads() && ++reads_told_ > reads_to_skip_) tell_read(at, n, a.size - left);
    } else {
      CITCAT_ASSERT(store_count_ < stores_.size());
      stores_[store_count_++] = {at, n};
    }
    linear += n;
    left -= n;
  }
}

/// Tells a read of `size` bytes, `first` bytes into its operand.
void Machine::tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (info_->kind != InstructionClass::fxrstor) {
    sink_->read(at, size, AccessKind::data, position_);
    return;
  }
  // Of each x87 register's slot ten bytes are read (SDM vol. 1, figure 10-3).
  constexpr std::uint32_t kRegisters = 32, kXmm = 160, kSlot = 16, kRegisterBytes = 10;
  const auto is_read = [&](std::uint32_t i) {
    const std::uint32_t byte = first + i;
    return byte < kRegisters || byte >= kXmm || byte % kSlot < kRegisterBytes;
  };
  for (std::uint32_t i = 0; i < size;) {
    std::uint32_t n = 0;
    while (i + n < size && is_read(i + n)) ++n;
    if (n != 0) sink_->read(at + i, n, AccessKind::data, position_);
    i += n;
    while (i < size && !is_read(i)) ++i;
  }
}

void Machine::check_segment(const DataAccess& a, const MemoryOperand& operand) const {
  if (model_ == CpuModel::i8088) return;  // has neither limits nor types
  // Intel SDM vol. 3, 5.3 and 5.4. The engine checks neither limits nor types.
  const int s = operand.segment;
  const std::uint32_t limit = engine_.segment_limit(s);
  const std::uint32_t flags = engine_.segment_flags(s);
  const bool expand_down = (flags & 0x1c00) == 0x1400;  // S, data, E
  bool good;
  if (!expand_down) {
    good = a.offset <= limit && limit - a.offset >= a.size - 1u;
  } else {
    const std::uint32_t top = (flags & 1u << 22) != 0 ? 0xffffffff : 0xffff;
    good = a.offset > limit && a.offset <= top && top - a.offset >= a.size - 1u;
  }
  if (good && protected_mode()) {
    const bool present = (flags & 0x8000) != 0;
    const bool code = (flags & 0x800) != 0;
    const bool bit = (flags & 0x200) != 0;  // writable data, readable code
    good = present && (a.write ? !code && bit : !code || bit);
  }
  if (!good) throw CpuException{static_cast<std::uint8_t>(s == kSs ? 12 : 13), 0u, 0};
}

const InstructionInfo& Machine::fetch(std::uint32_t linear) {
  const bool user = user_mode();
  if ((linear & ~kPageMask) != code_page_) {
    code_frame_ = mmu_.translate(LinearAddr{linear}, Access::execute, user);
    code_frame_.value &= ~kPageMask;
    code_host_ = memory_.host(code_frame_);
    if (code_host_ == nullptr) throw UndefinedMemory{code_frame_, 1, "code"};
    code_page_ = linear & ~kPageMask;
    note_code(code_frame_.page());
  }
  const std::uint32_t offset = linear & kPageMask;
  physical_ = code_frame_ + offset;
  const CodeMode mode = code_mode();
  Decoded& slot = decoded_[decoded_slot(linear)];
  const std::uint32_t here = std::min(kPageSize - offset, std::uint32_t{kMaxInstructionBytes});
  if (slot.is(linear, mode, {code_host_ + offset, here})) [[likely]] {
    if (!memory_.is_defined(physical_, slot.info.length)) {
      throw UndefinedMemory{physical_, slot.info.length, "code"};
    }
    if (tells_reads()) sink_->fetch(physical_, slot.info.length, position_);
    return slot.info;
  }
  slot.valid = false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::memcpy(bytes.data(), code_host_ + offset, here);
  slot.info = decode_instruction({bytes.data(), here}, mode, model_);
  std::uint32_t first = slot.info.state == DecodeState::ok ? slot.info.length : here;
  std::uint32_t second = 0;
  PhysAddr next;
  if (slot.info.state == DecodeState::needs_more_bytes && here < kMaxInstructionBytes) {
    next = mmu_.translate(LinearAddr{linear + here}, Access::execute, user);
    const std::uint8_t* host = memory_.host(next);
    if (host == nullptr) throw UndefinedMemory{next, 1, "code"};
    std::memcpy(&bytes[here], host, bytes.size() - here);
    slot.info = decode_instruction(bytes, mode, model_);
    if (slot.info.state == DecodeState::ok) second = slot.info.length - here;
  } else if (slot.info.state != DecodeState::ok) {
    first = 1;  // how many bytes an invalid instruction takes is not defined
  }
  if (!memory_.is_defined(physical_, first)) throw UndefinedMemory{physical_, first, "code"};
  if (second != 0 && !memory_.is_defined(next, second)) {
    throw UndefinedMemory{next, second, "code"};
  }
  if (tells_reads()) {
    sink_->fetch(physical_, first, position_);
    if (second != 0) sink_->fetch(next, second, position_);
  }
  slot.linear = linear;
  slot.mode = mode;
  slot.valid = slot.info.state == DecodeState::ok;
  return slot.info;
}

// ---------------------------------------------------------------------------------------------
// After an instruction

void Machine::keep_flag_inputs(const InstructionInfo& info) {
  flag_inputs_.eflags = engine_.eflags();
  for (std::size_t i = 0; i < 8; ++i) flag_inputs_.gpr[i] = engine_.gpr(static_cast<int>(i));
  flag_inputs_.memory = 0;
  flag_operand_.reset();
  if (model_ != CpuModel::i286 || info.operand_count == 0) return;  // later rules need no memory
  const MemoryOperand& operand = info.operands[0];
  flag_operand_ = engine_.segment_base(operand.segment) +
                  operand_offset(operand, engine_.gprs(), (engine_.hflags() & kHfSs32) != 0);
}

void Machine::flags_after(const InstructionInfo& info) {
  const bool loads =
      sixteen_bit_ && (info.kind == InstructionClass::popf || info.kind == InstructionClass::iret);
  if (!fixes_flags_ && !loads) return;
  const std::uint32_t now = engine_.eflags();
  std::uint32_t wanted = now;
  if (loads) wanted = loaded_flags(model_, protected_mode(), now);
  if (fixes_flags_) {
    std::uint32_t memory = 0;
    if (flag_operand_) {
      std::array<std::uint8_t, 4> bytes{};
      read_operand(*flag_operand_, std::span(bytes).first(info.operand_bytes));
      std::memcpy(&memory, bytes.data(), 4);
    }
    wanted = fixed_flags(info, model_, flag_inputs_, now, engine_.gprs(), memory);
  }
  if (wanted == now) return;
  fix_flags_ = wanted;
  action_ = Action::fix_flags;
}

void Machine::after_system(const InstructionInfo& info) {
  switch (info.kind) {
    case InstructionClass::mmx:
    case InstructionClass::emms:
      note_mmx();
      break;
    case InstructionClass::mov_to_cr:
      forget_code_page();
      mmu_.control_changed(info.reg_field == 3);
      if (sink_ != nullptr && (info.reg_field == 3 || info.reg_field == 0)) {
        sink_->address_space(engine_.cr(3), position_);
      }
      break;
    case InstructionClass::lmsw:
    case InstructionClass::clts:
      mmu_.control_changed(false);
      break;
    case InstructionClass::invlpg:
      forget_code_page();
      mmu_.invalidate_page(LinearAddr{invlpg_linear_});
      break;
    case InstructionClass::cache_flush:
      if (sink_ != nullptr) sink_->cache_flushed(info.opcode == 0x09, position_);
      break;
    case InstructionClass::iret:
      resume_flag_ = (engine_.system_flags() & kFlagRf) != 0;
      engine_.drop_resume_flag();
      break;
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
      if (info.reg_field == kSs) stack_shadow_ = position_.instruction + 1;
      break;
    case InstructionClass::out:
    case InstructionClass::outs:
      if (has_a20_gate_ && a20_gate_.mask() != engine_.a20_mask()) move_a20_gate();
      break;
    default:
      break;
  }
}

/// The port write just completed opened or closed the gate.
void Machine::move_a20_gate() {
  engine_.set_a20_mask(a20_gate_.mask());
  mmu_.set_a20_mask(a20_gate_.mask());
  forget_code_page();
  action_ = Action::flush_tlb;
}

}  // namespace citcat
