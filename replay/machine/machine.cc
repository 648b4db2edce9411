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
    : cpu_(model, bus, environment, sink, path, *this, *this), fpu_(std::make_unique<HostFpu>()) {
  if (sink == nullptr) return;
  block_receiver_ = sink->block_receiver();
  detail_ = sink->detail();
  if (detail_ == Detail::instructions && block_receiver_ == nullptr) detail_ = Detail::nothing;
}

Machine::~Machine() = default;

void Machine::load(const CpuState& state, const MemoryImage& image) {
  loaded_ = state;
  cpu_.memory.load(image, state.ram_bytes);
  std::uint32_t mxcsr_mask = 0;
  std::memcpy(&mxcsr_mask, &state.fx[28], 4);
  fpu_->set_mxcsr_mask(mxcsr_mask);
  set_registers(state);
  cpu_.resume_flag = (state.eflags & kFlagRf) != 0;
  has_a20_gate_ = follows_a20_gate(state);
  cpu_.mmu.state_loaded();
}

/// From the 486 on the processor itself masks the bit. Before, the pins show it, and the gate
/// behind them is followed only where the dump has it closed. An 8088 has no such bit.
bool Machine::follows_a20_gate(const CpuState& state) const {
  if (!cpu_.traits.has_a20()) return false;
  return !cpu_.traits.a20_outside || (state.a20_mask & A20Gate::kBit) == 0;
}

// ---------------------------------------------------------------------------------------------
// The run loop

void Machine::run(Position until) {
  cpu_.until = until;
  expectation_.quiet_until = until.instruction;
  if (expectation_.compares) expectation_.update();
  try {
    while (!cpu_.halted && !cpu_.shut_down) {
      if (!run_step()) return;
    }
  } catch (const UndefinedMemory& u) {
    cpu_.engine.set_eip(cpu_.linear - cpu_.engine.segment_base(kCs));
    flight_.active = false;
    char text[160];
    std::snprintf(text, sizeof text,
                  "read of memory that no evidence defines (%s, %u bytes at physical %08x)", u.what,
                  u.size, u.address.value);
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "", ""};
  } catch (...) {
    take_port_access_back();
    throw;
  }
}

std::uint32_t Machine::next_linear() const {
  const bool begun = flight_.active || running_.block != nullptr;
  return begun ? cpu_.linear : cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
}

bool Machine::run_step() {
  cpu_.after_stop = AfterStop::none;
  rights_.stale = true;
  cpu_.code.forget_block();
  running_.surroundings = RunningBlock::kUnknown;
  const EngineStop stop = cpu_.engine.run();
  const bool arranged = arranged_;
  if (arranged_) restore_arrangement();
  if (!lent_code_.empty()) forget_lent_code();
  if (patched_frame_ != kNoFrame) note_patches();
  if (running_.rolled_back) {
    roll_block_back();
    return true;
  }
  if (stop == EngineStop::translation_fault) {
    resolve_translation_fault();
    if (arranged && flight_.active && flight_.resuming) arrange();
    return cpu_.after_stop != AfterStop::at_position;
  }
  if (stop != EngineStop::requested) {
    char text[160];
    std::snprintf(text, sizeof text, "the engine stopped: %s (EIP %08x)",
                  cpu_.engine.failure().c_str(), cpu_.engine.eip());
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "", ""};
  }
  if (cpu_.after_stop == AfterStop::at_position) {
    cpu_.engine.set_eip(cpu_.linear - cpu_.engine.segment_base(kCs));
    return false;
  }
  finish_run_step();
  return cpu_.after_stop != AfterStop::at_position;
}

void Machine::finish_run_step() {
  switch (cpu_.after_stop) {
    case AfterStop::native_fault:
    case AfterStop::finish_repeat:
    case AfterStop::ask_again:
    case AfterStop::retranslate:
    case AfterStop::replan:
      break;  // the engine is elsewhere
    default:
      cpu_.engine.set_eip(cpu_.linear - cpu_.engine.segment_base(kCs));
  }
  switch (cpu_.after_stop) {
    case AfterStop::emulate:
      try {
        emulate();
      } catch (const NeedsMapping& n) {
        flight_.reads_to_skip = flight_.reads_told;
        flight_.active = false;
        cpu_.memory.ensure_mapped(n.page);
      } catch (const PageFault& f) {
        raise({14, f.error_code, f.address}, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
      } catch (const CpuException& e) {
        raise(e, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
      }
      break;
    case AfterStop::raise:
      raise(exception_, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
      break;
    case AfterStop::map_page:
      cpu_.memory.ensure_mapped(page_to_map_);
      break;
    case AfterStop::fix_flags:
      cpu_.engine.set_eflags(fix_flags_);
      break;
    case AfterStop::native_fault:
      handle_native_fault();
      break;
    case AfterStop::segment_end:
      deliver_segment_end();
      break;
    case AfterStop::patch:
      arrange();
      break;
    case AfterStop::finish_repeat:
      finish_repeat();
      break;
    case AfterStop::flush_tlb:
      cpu_.engine.flush_tlb();
      break;
    case AfterStop::ask_again:
      settle_in_flight(hot_, false);
      cpu_.engine.set_eip(hot_ - cpu_.engine.segment_base(kCs));
      cpu_.engine.flush_tlb();
      break;
    case AfterStop::debug_trap:
      take_debug_trap();
      break;
    case AfterStop::resume:
      break;
    case AfterStop::forget_code:
      forget_code();
      break;
    case AfterStop::step:
      cpu_.engine.step_once();
      break;
    case AfterStop::retranslate:
      retranslate();
      break;
    case AfterStop::replan:
      replan();
      break;
    case AfterStop::at_position:
    case AfterStop::none:
      throw InternalError("the engine stopped without a reason");
  }
}

// ---------------------------------------------------------------------------------------------
// The life of an instruction: prepared, executed by the engine, completed

/// Completes what was in flight, now that `linear` is to be executed. False when the run has to
/// stop first, or goes on with what is already prepared.
bool Machine::settle_before(std::uint32_t linear) {
  if (flight_.resuming) {
    flight_.resuming = false;
    if (flight_.active && linear == cpu_.linear) return false;
  }
  if (!flight_.active) return true;
  const bool arranged = arranged_;
  if (arranged) restore_arrangement();
  complete_in_flight(linear);
  if (cpu_.after_stop != AfterStop::none) {  // flags to be set right first
    cpu_.linear = linear;
    cpu_.engine.stop();
    return false;
  }
  if (arranged) {
    cpu_.linear = linear;
    cpu_.request(flight_.active ? AfterStop::finish_repeat : AfterStop::resume);
    return false;
  }
  if (flight_.repeat_done && flight_.stores_to_code) {
    // There may be another instruction by now than the one whose count is to be checked.
    cpu_.request(AfterStop::finish_repeat);
    return false;
  }
  return !flight_.active;  // else the final count check of a REP
}

void Machine::on_instruction(std::uint32_t linear, std::uint32_t) {
  if (cpu_.by_blocks && (runs_in_block(linear) || running_.rolled_back)) return;
  running_.surroundings = RunningBlock::kUnknown;
  if (!settle_before(linear)) return;
  do {
    begin(linear);
  } while (cpu_.after_stop == AfterStop::none && flight_.iterating && repeat_quickly());
}

/// At the boundary before the instruction or iteration at `linear`: what is due there, or else
/// the engine may execute it.
void Machine::begin(std::uint32_t linear) {
  if (expectation_.compares && expectation_.is_now()) expectation_.update();
  if (debug_pending_ != 0 && !in_stack_shadow()) [[unlikely]] {
    cpu_.linear = linear;
    cpu_.request(AfterStop::debug_trap);
    return;
  }
  const bool mid_repeat = cpu_.position.iteration != 0;
  if (!mid_repeat || linear == cpu_.linear) {
    if (cpu_.boundary_stop()) {
      cpu_.linear = linear;
      cpu_.request(AfterStop::at_position);
      return;
    }
  }
  cpu_.linear = linear;
  if (!mid_repeat && cpu_.code_cache_full) [[unlikely]] {
    cpu_.request(AfterStop::forget_code);
    return;
  }
  try {
    prepare(linear);
  } catch (const PageFault& f) {
    exception_ = {14, f.error_code, f.address};
    cpu_.request(AfterStop::raise);
  } catch (const CpuException& e) {
    exception_ = e;
    cpu_.request(AfterStop::raise);
  } catch (const NeedsMapping& n) {
    flight_.reads_to_skip = flight_.reads_told;
    page_to_map_ = n.page;
    flight_.active = false;
    cpu_.request(AfterStop::map_page);
  } catch (const CodeElsewhere&) {
    ask_for_code_again();
  }
}

bool Machine::repeat_count_is_zero() const {
  const std::uint32_t count = cpu_.engine.gpr(kEcx);
  return (flight_.info->address_bits == 32 ? count : count & 0xffff) == 0;
}

void Machine::complete_in_flight(std::uint32_t next_linear) {
  const bool same = next_linear == cpu_.linear;
  if (flight_.iterating) {
    // A store into the REP's own bytes makes the engine report the iteration again, unchanged.
    if (same && cpu_.engine.gpr(kEcx) == flight_.count_before) {
      begin_anew();
      return;
    }
    report_completed();
    flight_.iterating = false;
    ++cpu_.position.iteration;
    if (!same) {
      retire();
    } else if (repeat_count_is_zero()) {
      flight_.repeat_done = true;
    } else {
      flight_.active = false;
    }
    return;
  }
  if (flight_.repeat_done) {
    flight_.repeat_done = false;
    if (cpu_.position.iteration == 0) report_completed();  // a count of zero from the start
    retire();
    return;
  }
  if (same && comes_again()) {
    // The same for any other instruction that stores into itself: it has not completed yet.
    begin_anew();
    return;
  }
  if (is_enter(*flight_.info) && flight_.info->operand_bytes == 2) keep_upper_frame_pointer();
  report_completed();
  flags_after(*flight_.info);
  retire();
}

void Machine::report_descriptors() {
  switch (flight_.info->kind) {
    case InstructionClass::iret:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
      cpu_.code.forget();
      if (cpu_.protected_mode()) mark_transfer_accessed();
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
  flight_.reads_to_skip = 0;
  if (flight_.restore_segment_push) {
    flight_.restore_segment_push = false;
    const InFlight::Store& s = flight_.stores[0];
    std::memcpy(cpu_.memory.host(s.physical + s.size), &flight_.segment_push_upper, 2);
  }
  const bool loads_flags =
      flight_.info->kind == InstructionClass::iret || flight_.info->kind == InstructionClass::popf;
  const bool quiet = expectation_.compares && !expectation_.is_now() && !loads_flags;
  const bool told = cpu_.sink != nullptr && (!quiet || expectation_.expects_stores);
  for (std::size_t i = 0; i < flight_.store_count; ++i) {
    const InFlight::Store& s = flight_.stores[i];
    cpu_.memory.mark_defined(s.physical, s.size);
    if (expectation_.compares && in_string_copy())
      expectation_.sink->copied(flight_.copied_from, s.physical, s.size);
    if (told) {
      cpu_.sink->write(s.physical, {cpu_.memory.host(s.physical), s.size}, AccessKind::data,
                       cpu_.position);
    }
  }
  if (flight_.info->kind != InstructionClass::plain) report_descriptors();
  if (quiet && expectation_.keeps_account)
    expectation_.untold_flags =
        expectation_.untold_flags + flag_effect_of(*flight_.info, cpu_.engine.gpr(kEcx));
  Sink* const listener = quiet ? block_receiver_ : cpu_.sink;
  if (listener != nullptr) listener->instruction(executed(), cpu_.position);
}

/// The instruction or iteration in flight, as sinks see it.
ExecutedInstruction Machine::executed() const {
  ExecutedInstruction e;
  e.info = flight_.info;
  e.linear = cpu_.linear;
  e.eip = cpu_.linear - cpu_.code.base;
  e.physical = flight_.physical;
  e.ea_count = flight_.ea_count;
  for (unsigned i = 0; i < flight_.ea_count; ++i) e.ea[i] = flight_.ea[i];
  return e;
}

void Machine::retire() {
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
}

void Machine::prepare(std::uint32_t linear) {
  cpu_.code.base = cpu_.engine.segment_base(kCs);
  if (breaks_on_code_) [[unlikely]]
    check_code_breakpoints(linear);
  const std::uint32_t eip = linear - cpu_.code.base;
  const std::uint32_t limit = cpu_.traits.has_limits ? cpu_.engine.segment_limit(kCs) : 0xffff;
  if (eip > limit && cpu_.traits.has_limits) throw CpuException{13, 0u, 0};
  flight_.info = &fetch(linear);
  const DecodedInstruction& info = *flight_.info;
  flight_.store_count = 0;
  flight_.stores_to_code = false;
  flight_.ea_count = 0;
  flight_.reads_told = 0;
  if (info.state != DecodeState::ok) refuse_undefined(info, linear);
  if (eip > limit || limit - eip < info.length - 1u) {
    if (!cpu_.traits.has_limits) {
      throw ReplayStopped{cpu_.position, "code that wraps around the end of its segment",
                          ~std::uint64_t{0}, "", ""};
    }
    throw CpuException{13, 0u, 0};
  }
  flight_.active = true;
  flight_.hflags_before = cpu_.engine.hflags();
  flight_.stack_before = cpu_.engine.gpr(kEsp);
  flight_.wants_patch = (cpu_.traits.sixteen_bit || info.aliased || info.lock) && needs_canonical();
  if (info.is_repeated()) {
    flight_.count_before = cpu_.engine.gpr(kEcx);
    if (repeat_count_is_zero()) {
      flight_.repeat_done = true;
      if (flight_.wants_patch) cpu_.request(AfterStop::finish_repeat);
      return;
    }
    flight_.iterating = true;
  }
  if (cpu_.traits.sixteen_bit && prepare_16_bit()) return;
  if (is_made_here()) {
    flight_.wants_patch = false;
    cpu_.request(AfterStop::emulate);
    return;
  }
  fixes_flags_ = info.flag_rule != FlagRule::none && has_flag_rule(info, cpu_.model);
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
    if (flight_.wants_patch) cpu_.request(AfterStop::patch);
  } catch (...) {
    flight_.active = false;
    flight_.iterating = false;
    throw;
  }
}

// ---------------------------------------------------------------------------------------------
// After an instruction

void Machine::keep_flag_inputs(const DecodedInstruction& info) {
  flag_inputs_.eflags = cpu_.engine.eflags();
  for (std::size_t i = 0; i < 8; ++i) flag_inputs_.gpr[i] = cpu_.engine.gpr(static_cast<int>(i));
  flag_inputs_.memory = 0;
  flag_operand_.reset();
  if (cpu_.traits.undefined_flags != CpuTraits::UndefinedFlags::i286 || info.operand_count == 0)
    return;  // later rules need no memory
  const MemoryOperand& operand = info.operands[0];
  flag_operand_ = cpu_.linear_of(operand);
}

void Machine::flags_after(const DecodedInstruction& info) {
  const bool loads = cpu_.traits.sixteen_bit &&
                     (info.kind == InstructionClass::popf || info.kind == InstructionClass::iret);
  if (!fixes_flags_ && !loads) return;
  const std::uint32_t now = cpu_.engine.eflags();
  std::uint32_t wanted = now;
  if (loads) wanted = loaded_flags(cpu_.model, cpu_.protected_mode(), now);
  if (fixes_flags_) {
    std::uint32_t memory = 0;
    if (flag_operand_) {
      std::array<std::uint8_t, 4> bytes{};
      read_operand(*flag_operand_, std::span(bytes).first(info.operand_bytes));
      std::memcpy(&memory, bytes.data(), 4);
    }
    wanted = fixed_flags(info, cpu_.model, flag_inputs_, now, cpu_.engine.gprs(), memory);
  }
  if (wanted == now) return;
  fix_flags_ = wanted;
  cpu_.after_stop = AfterStop::fix_flags;
}

void Machine::after_system(const DecodedInstruction& info) {
  switch (info.kind) {
    case InstructionClass::mmx:
    case InstructionClass::emms:
      note_mmx();
      break;
    case InstructionClass::mov_to_cr:
      cpu_.code.forget_all();
      cpu_.mmu.control_changed(info.reg_field == 3);
      if (cpu_.sink != nullptr && (info.reg_field == 3 || info.reg_field == 0)) {
        cpu_.sink->address_space(cpu_.engine.cr(3), cpu_.position);
      }
      break;
    case InstructionClass::lmsw:
    case InstructionClass::clts:
      cpu_.mmu.control_changed(false);
      break;
    case InstructionClass::invlpg:
      cpu_.code.forget_all();
      cpu_.mmu.invalidate_page(LinearAddr{invlpg_linear_});
      break;
    case InstructionClass::cache_flush:
      if (cpu_.sink != nullptr) cpu_.sink->cache_flushed(info.opcode == 0x09, cpu_.position);
      break;
    case InstructionClass::iret:
      cpu_.resume_flag = (cpu_.engine.system_flags() & kFlagRf) != 0;
      cpu_.engine.drop_resume_flag();
      break;
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
      if (info.reg_field == kSs) stack_shadow_ = cpu_.position.instruction + 1;
      break;
    case InstructionClass::out:
    case InstructionClass::outs:
      if (has_a20_gate_ && a20_gate_.mask() != cpu_.engine.a20_mask()) move_a20_gate();
      break;
    default:
      break;
  }
}

/// The port write just completed opened or closed the gate.
void Machine::move_a20_gate() {
  cpu_.engine.set_a20_mask(a20_gate_.mask());
  cpu_.mmu.set_a20_mask(a20_gate_.mask());
  cpu_.code.forget_all();
  cpu_.after_stop = AfterStop::flush_tlb;
}

}  // namespace citcat
