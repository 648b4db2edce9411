#include "replay/machine/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "formats/io/error.h"
#include "replay/machine/machine_descriptor.h"
#include "replay/x86/host_fpu.h"

namespace citcat {

Machine::Machine(CpuModel model, const BusModel& bus, Environment& environment, Sink* sink,
                 ExecutionPath path)
    : model_(model),
      traits_(cpu_traits(model)),
      environment_(environment),
      sink_(sink),
      by_blocks_(path == ExecutionPath::blocks && !traits_.sixteen_bit &&
                 (sink == nullptr || sink->detail() != Detail::accesses)),
      compares_(by_blocks_ && sink != nullptr && sink->detail() == Detail::comparison),
      engine_(model, by_blocks_ ? HookMode::blocks : HookMode::instructions, *this),
      memory_(engine_, bus.address_mask, traits_.address_pins),
      mmu_(engine_, memory_, *this, traits_.one_tlb) {
  fpu_ = std::make_unique<HostFpu>();
  sixteen_bit_ = traits_.sixteen_bit;
  wants_reads_ = sink_ != nullptr && sink_->wants_reads();
  if (sink_ == nullptr) return;
  block_receiver_ = sink_->block_receiver();
  detail_ = sink_->detail();
  if (detail_ == Detail::instructions && block_receiver_ == nullptr) detail_ = Detail::nothing;
  if (!compares_) return;
  comparing_ = sink_->comparing();
  expects_stores_ = comparing_->expects_stores();
  looks_ahead_ = comparing_->looks_ahead();
  keeps_account_ = comparing_->wants_account();
}

Machine::~Machine() = default;

void Machine::load(const CpuState& state, const MemoryImage& image) {
  loaded_ = state;
  memory_.load(image, state.ram_bytes);
  std::uint32_t mxcsr_mask = 0;
  std::memcpy(&mxcsr_mask, &state.fx[28], 4);
  fpu_->set_mxcsr_mask(mxcsr_mask);
  set_registers(state);
  resume_flag_ = (state.eflags & kFlagRf) != 0;
  has_a20_gate_ = follows_a20_gate(state);
  mmu_.state_loaded();
}

/// From the 486 on the processor itself masks the bit. Before, the pins show it, and the gate
/// behind them is followed only where the dump has it closed. An 8088 has no such bit.
bool Machine::follows_a20_gate(const CpuState& state) const {
  if (!traits_.has_a20()) return false;
  return !traits_.a20_outside || (state.a20_mask & A20Gate::kBit) == 0;
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
  } catch (...) {
    take_port_access_back();
    throw;
  }
}

std::uint32_t Machine::next_linear() const {
  const bool begun = in_flight_ || pending_ != nullptr;
  return begun ? linear_ : engine_.segment_base(kCs) + engine_.eip();
}

bool Machine::run_step() {
  action_ = Action::none;
  segments_stale_ = true;
  block_page_ = kNoPage;
  surroundings_ = kUnknown;
  const EngineStop stop = engine_.run();
  const bool arranged = arranged_;
  if (arranged_) restore_arrangement();
  if (!lent_code_.empty()) forget_lent_code();
  if (patched_frame_ != kNoFrame) note_patches();
  if (rolled_back_) {
    roll_block_back();
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
    case Action::native_fault:
    case Action::finish_repeat:
    case Action::ask_again:
    case Action::retranslate:
    case Action::replan:
      break;  // the engine is elsewhere
    default:
      engine_.set_eip(linear_ - engine_.segment_base(kCs));
  }
  switch (action_) {
    case Action::emulate:
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
      raise(exception_, engine_.eip(), DeliveredEvent::Kind::exception);
      break;
    case Action::map_page:
      memory_.ensure_mapped(page_to_map_);
      break;
    case Action::fix_flags:
      engine_.set_eflags(fix_flags_);
      break;
    case Action::native_fault:
      handle_native_fault();
      break;
    case Action::segment_end:
      deliver_segment_end();
      break;
    case Action::arrange:
      arrange();
      break;
    case Action::finish_repeat:
      finish_repeat();
      break;
    case Action::flush_tlb:
      engine_.flush_tlb();
      break;
    case Action::ask_again:
      settle_in_flight(hot_, false);
      engine_.set_eip(hot_ - engine_.segment_base(kCs));
      engine_.flush_tlb();
      break;
    case Action::debug_trap:
      take_debug_trap();
      break;
    case Action::resume:
      break;
    case Action::forget_code:
      forget_code();
      break;
    case Action::step:
      engine_.step_once();
      break;
    case Action::retranslate:
      retranslate();
      break;
    case Action::replan:
      replan();
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
  if (repeat_done_ && stores_to_code_) {
    // There may be another instruction by now than the one whose count is to be checked.
    request(Action::finish_repeat);
    return false;
  }
  return !in_flight_;  // else the final count check of a REP
}

void Machine::on_instruction(std::uint32_t linear, std::uint32_t) {
  if (by_blocks_ && (runs_in_block(linear) || rolled_back_)) return;
  surroundings_ = kUnknown;
  if (!settle_before(linear)) return;
  do {
    begin(linear);
  } while (action_ == Action::none && iterating_ && repeat_quickly());
}

/// At the boundary before the instruction or iteration at `linear`: what is due there, or else
/// the engine may execute it.
void Machine::begin(std::uint32_t linear) {
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
  if (!mid_repeat && forget_code_) [[unlikely]] {
    request(Action::forget_code);
    return;
  }
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
  } catch (const CodeElsewhere&) {
    ask_for_code_again();
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
      begin_anew();
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
  if (same && comes_again()) {
    // The same for any other instruction that stores into itself: it has not completed yet.
    begin_anew();
    return;
  }
  if (is_enter(*info_) && info_->operand_bytes == 2) keep_upper_frame_pointer();
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
  if (quiet && keeps_account_)
    untold_flags_ = untold_flags_ + flag_effect_of(*info_, engine_.gpr(kEcx));
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
  const std::uint32_t eip = linear - code_base_;
  const std::uint32_t limit = traits_.has_limits ? engine_.segment_limit(kCs) : 0xffff;
  if (eip > limit && traits_.has_limits) throw CpuException{13, 0u, 0};
  info_ = &fetch(linear);
  const DecodedInstruction& info = *info_;
  store_count_ = 0;
  stores_to_code_ = false;
  ea_count_ = 0;
  reads_told_ = 0;
  if (info.state != DecodeState::ok) refuse_undefined(info, linear);
  if (eip > limit || limit - eip < info.length - 1u) {
    if (!traits_.has_limits) {
      throw ReplayStopped{position_, "code that wraps around the end of its segment",
                          ~std::uint64_t{0}, "", ""};
    }
    throw CpuException{13, 0u, 0};
  }
  in_flight_ = true;
  hflags_before_ = engine_.hflags();
  stack_before_ = engine_.gpr(kEsp);
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
  if (is_made_here()) {
    wants_arrangement_ = false;
    request(Action::emulate);
    return;
  }
  fixes_flags_ = info.flag_rule != FlagRule::none && has_flag_rule(info, model_);
  if (fixes_flags_) keep_flag_inputs(info);
  try {
    prepare_operands();
    if (info.control_flow) check_branch_target();
    if (is_enter(info)) check_final_stack();
    if (fixes_flags_ && flag_operand_) {
      flag_inputs_.memory = 0;
      std::array<std::uint8_t, 4> bytes{};
      read_operand(*flag_operand_, std::span(bytes).first(info.operand_bytes));
      std::memcpy(&flag_inputs_.memory, bytes.data(), 4);
    }
    if (wants_arrangement_) request(Action::arrange);
  } catch (...) {
    in_flight_ = false;
    iterating_ = false;
    throw;
  }
}

// ---------------------------------------------------------------------------------------------
// After an instruction

void Machine::keep_flag_inputs(const DecodedInstruction& info) {
  flag_inputs_.eflags = engine_.eflags();
  for (std::size_t i = 0; i < 8; ++i) flag_inputs_.gpr[i] = engine_.gpr(static_cast<int>(i));
  flag_inputs_.memory = 0;
  flag_operand_.reset();
  if (traits_.undefined_flags != CpuTraits::UndefinedFlags::i286 || info.operand_count == 0)
    return;  // later rules need no memory
  const MemoryOperand& operand = info.operands[0];
  flag_operand_ = linear_of(operand);
}

void Machine::flags_after(const DecodedInstruction& info) {
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

void Machine::after_system(const DecodedInstruction& info) {
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
