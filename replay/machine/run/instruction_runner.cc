#include "replay/machine/run/instruction_runner.h"

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/run/code_fetch.h"
#include "replay/machine/run/engine_translations.h"
#include "replay/machine/run/string_runner.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/early_quirks.h"
#include "replay/machine/units/emulator.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/feature_gate.h"
#include "replay/machine/units/flag_correction.h"
#include "replay/machine/units/near_transfer.h"
#include "replay/machine/units/operand_preparation.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/retirement.h"
#include "x86/early_cpu_quirks.h"

namespace citcat {

namespace {

constexpr std::uint8_t kDebugVector = 1, kUndefined = 6;

/// How often the engine may ask again for a page at one place before that counts as a
/// disagreement: translation blocks that reach into an absent page, system accesses.
constexpr unsigned kMaxNativeRetries = 8;

}  // namespace

void InstructionRunner::complete_in_flight(LinearAddr next_linear) {
  const bool same = next_linear == cpu_.linear;
  if (flight_.iterating) {
    // A store into the REP's own bytes makes the engine report the iteration again, unchanged.
    if (same && cpu_.engine.wide().gpr(kEcx) == flight_.count_before) {
      begin_anew();
      return;
    }
    retirement_.report_completed();
    flight_.iterating = false;
    ++cpu_.position.iteration;
    if (!same) {
      leave_repeat();
      retirement_.retire();
    } else if (repeat_count_is_zero()) {
      flight_.repeat_done = true;
    } else {
      flight_.active = false;
    }
    return;
  }
  if (flight_.repeat_done) {
    flight_.repeat_done = false;
    if (cpu_.position.iteration == 0)
      retirement_.report_completed();  // a count of zero from the start
    leave_repeat();
    retirement_.retire();
    return;
  }
  if (same && comes_again()) {
    // The same for any other instruction that stores into itself: it has not completed yet.
    begin_anew();
    return;
  }
  if (is_enter(*flight_.info) && flight_.info->operand_bytes == 2) near_.keep_upper_frame_pointer();
  retirement_.report_completed();
  flag_correction_.correct(*flight_.info);
  retirement_.retire();
}

bool InstructionRunner::settle_before(LinearAddr linear) {
  if (flight_.resuming) {
    flight_.resuming = false;
    if (flight_.active && linear == cpu_.linear) return false;
  }
  if (!flight_.active) return true;
  const bool arranged = patcher_.is_active();
  if (arranged) patcher_.restore();
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

/// IP goes on from FFFF to 0 (8086 Family User's Manual, 2-13), the engine to 10000.
bool InstructionRunner::begins_beyond_segment(LinearAddr linear) const {
  return linear.low32() - cpu_.engine.segment_base(kCs) >= kRealSegmentBytes;
}

/// At the boundary before the instruction or iteration at `linear`: what is due there, or else
/// the engine may execute it.
void InstructionRunner::begin(LinearAddr linear) {
  if (!cpu_.traits.has_limits && begins_beyond_segment(linear)) [[unlikely]] {
    const std::uint32_t base = cpu_.engine.segment_base(kCs);
    cpu_.linear = LinearAddr{base}.plus32((linear.low32() - base) % kRealSegmentBytes);
    cpu_.request(AfterStop::resume);
    return;
  }
  if (expectation_.compares && expectation_.is_now()) expectation_.update();
  if (debug_.pending() != 0 && !debug_.in_stack_shadow()) [[unlikely]] {
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
    exception_ = {14, f.error_code, f.address.value};
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

void InstructionRunner::prepare(LinearAddr linear) {
  const bool wide = cpu_.bits64();
  cpu_.code.base = wide ? 0 : cpu_.engine.segment_base(kCs);
  if (debug_.breaks_on_code()) [[unlikely]]
    debug_.check_code(linear);
  if (wide && !CpuContext::is_canonical(linear.value)) throw CpuException{13, 0u, 0};
  const std::uint32_t eip = linear.low32() - cpu_.code.base;
  const std::uint32_t limit = wide                     ? 0xffffffff
                              : cpu_.traits.has_limits ? cpu_.engine.segment_limit(kCs)
                                                       : 0xffff;
  if (eip > limit && cpu_.traits.has_limits) throw CpuException{13, 0u, 0};
  flight_.info = &code_.fetch(linear);
  const DecodedInstruction& info = *flight_.info;
  flight_.store_count = 0;
  flight_.stores_to_code = false;
  flight_.ea_count = 0;
  flight_.reads_told = 0;
  if (cpu_.traits.instructions >= InstructionSet::p6) features_.check(info);
  if (info.state != DecodeState::ok) code_.refuse_undefined(info, linear);
  bool wraps = false;
  if (!wide && (eip > limit || limit - eip < info.length - 1u)) {
    if (cpu_.traits.has_limits) throw CpuException{13, 0u, 0};
    wraps = true;
  }
  flight_.active = true;
  flight_.hflags_before = cpu_.engine.hflags();
  flight_.stack_before = cpu_.engine.wide().gpr(kEsp);
  flight_.wants_patch =
      (cpu_.traits.sixteen_bit || info.aliased || info.lock) && patcher_.needs_canonical();
  if (info.is_repeated()) {
    flight_.count_before = cpu_.engine.wide().gpr(kEcx);
    if (repeat_count_is_zero()) {
      flight_.repeat_done = true;
      if (flight_.wants_patch) cpu_.request(AfterStop::finish_repeat);
      return;
    }
    flight_.iterating = true;
    look_within_repeat();
  }
  if (cpu_.traits.sixteen_bit && early_.prepare()) return;
  if (wraps) {  // the rest of it is at the beginning of the segment
    patcher_.lend_beyond(LinearAddr{cpu_.code.base}, eip + info.length - kRealSegmentBytes);
  }
  if (emulator_.is_made_here()) {
    flight_.wants_patch = false;
    cpu_.request(AfterStop::emulate);
    return;
  }
  note_code(linear, info.length);
  flag_correction_.begin(info);
  try {
    preparation_.prepare();
    if (info.control_flow) near_.check_target();
    if (is_enter(info)) near_.check_final_stack();
    flag_correction_.read_operand_before(info);
    if (flight_.wants_patch) cpu_.request(AfterStop::patch);
  } catch (...) {
    flight_.active = false;
    flight_.iterating = false;
    throw;
  }
}

/// run() ends within a repeated string too, after so many iterations that they take less than a
/// second: whoever bounds the run by time or memory looks at it then.
void InstructionRunner::look_within_repeat() {
  constexpr std::uint32_t kIterations = 1u << 19;
  const Position now = cpu_.position;
  if (cpu_.until.instruction <= now.instruction || now.iteration > ~kIterations) return;
  behind_ = cpu_.until;
  cpu_.until = lowered_ = {now.instruction, now.iteration + kIterations};
}

/// It has ended before that. After a long one it is looked all the same.
void InstructionRunner::leave_repeat() {
  constexpr std::uint32_t kLong = 1u << 16;
  if (cpu_.until == lowered_ && cpu_.position.iteration < kLong) cpu_.until = behind_;
}

/// The engine is going to translate the instruction: what stores to its frames has to be known as
/// a store to code.
void InstructionRunner::note_code(LinearAddr linear, std::uint32_t size) {
  translations_.note_code(flight_.physical.page());
  if (linear.offset_in_page() + size <= kPageSize) return;
  const auto second = cpu_.mmu.look_up(cpu_.onward(linear, size - 1), Access::execute,
                                       cpu_.program(), Lookup::held);
  if (second) translations_.note_code(second->frame.page());
}

/// The engine makes the instruction in flight a block of its own, because it changes the block that
/// it was in, and has just reported it again. It stays prepared, and the engine must not be stopped
/// here: it would make the stores, and once more later. RCL, RCR and SETcc have lost the flags.
void InstructionRunner::begin_anew() {
  if (flight_.stores_to_code) {
    operands_.put_back_overwritten();
    cpu_.engine.put_arithmetic_flags_back(flight_.flags_before);
  }
  if (!flight_.wants_patch) return;
  // What was put in the instruction's place is taken back by now.
  flight_.reads_to_skip = flight_.reads_told;
  flight_.active = false;
  flight_.iterating = false;
}

bool InstructionRunner::comes_again() const {
  const bool calls = flight_.info->kind == InstructionClass::call ||
                     flight_.info->kind == InstructionClass::far_call;
  return flight_.info->control_flow ? calls && cpu_.engine.wide().gpr(kEsp) == flight_.stack_before
                                    : true;
}

bool InstructionRunner::repeat_count_is_zero() const { return cpu_.count_of(*flight_.info) == 0; }

void InstructionRunner::settle_in_flight(LinearAddr linear, bool completed) {
  // An iteration that was made leaves the engine where it found it.
  const bool iterated = flight_.iterating && cpu_.engine.wide().gpr(kEcx) != flight_.count_before;
  if (!flight_.active || (linear == cpu_.linear && !completed && !iterated)) return;
  cpu_.after_stop = AfterStop::none;
  complete_in_flight(completed && !flight_.iterating ? cpu_.linear.plus32(1) : linear);
  if (cpu_.after_stop == AfterStop::fix_flags) flag_correction_.apply();
  cpu_.after_stop = AfterStop::none;
}

void InstructionRunner::handle_native_fault() {
  const LinearAddr linear = cpu_.engine_address();
  // #DB after a single step, and any fault elsewhere, mean that the instruction in flight is done.
  settle_in_flight(linear, native_vector_ == 1);
  if (!flight_.active && native_vector_ != 1) {
    // Something scheduled for this boundary comes first; the fault will come again.
    cpu_.linear = linear;
    if (cpu_.boundary_stop()) {
      cpu_.after_stop = AfterStop::at_position;
      return;
    }
  }
  if (native_vector_ == kUndefined && flight_.active) features_.check_refused(*flight_.info);
  CpuException e{static_cast<std::uint8_t>(native_vector_), std::nullopt, 0};
  // Intel SDM vol. 3, table 6-1: vectors with an error code.
  if (native_vector_ == 8 || (native_vector_ >= 10 && native_vector_ <= 13) ||
      native_vector_ == 17) {
    e.error_code = cpu_.engine.error_code();
  }
  if (native_vector_ == kDebugVector) {
    debug_.add_pending(DebugUnit::kStep);
    delivery_.take_debug_trap();
    return;
  }
  const std::uint64_t return_ip = cpu_.ip();
  if (cpu_.traits.sixteen_bit && native_vector_ == 0 && flight_.active) {
    cpu_.engine.set_eflags(divide_error_flags(*flight_.info, cpu_.model, cpu_.engine.eflags()));
    if (divide_error_points_past(cpu_.model)) return early_.raise_divide_error();
  }
  delivery_.raise(e, return_ip, DeliveredEvent::Kind::exception);
}

void InstructionRunner::resolve_translation_fault() {
  const LinearAddr linear = cpu_.engine_address();
  // A transfer to itself that has changed what it leads to: the engine finds other code there.
  const bool led_to_itself = cpu_.engine.translation_fault().access == EngineAccess::fetch &&
                             flight_.active && !flight_.resuming && flight_.info->control_flow &&
                             !comes_again();
  settle_in_flight(linear, led_to_itself);
  if (flight_.active && flight_.repeat_done) {
    finish_repeat();
    return;
  }
  if (++flight_.retries > kMaxNativeRetries) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "the engine finds no translation for linear page %08" PRIx64
                  " where there is one",
                  cpu_.engine.translation_fault().page.value);
    throw ReplayStopped{cpu_.position, text};
  }
  try {
    if (flight_.active && cpu_.engine.translation_fault().access != EngineAccess::fetch) {
      const Access access = cpu_.engine.translation_fault().access == EngineAccess::write
                                ? Access::write
                                : Access::read;
      const LinearAddr page = cpu_.engine.translation_fault().page;
      if (translations_.lies_in_system_tables(page)) {
        cpu_.mmu.translate(page, access, Who::processor);
      } else {
        cpu_.mmu.translate(page, access, cpu_.program());
      }
      if (flight_.stores_to_code) {
        operands_.put_back_overwritten();
        cpu_.engine.write_raw_flags(flight_.flags_before);
      }
      flight_.resuming = true;
      return;
    }
    cpu_.linear = linear;
    if (debug_.pending() != 0) {
      delivery_.take_debug_trap();
      return;
    }
    if (cpu_.boundary_stop()) {
      cpu_.after_stop = AfterStop::at_position;
      return;
    }
    cpu_.code.base = static_cast<std::uint32_t>(cpu_.base_of(kCs));
    if (cpu_.traits.has_limits && !cpu_.bits64() &&
        linear.low32() - cpu_.code.base > cpu_.engine.segment_limit(kCs)) {
      throw CpuException{13, 0u, 0};
    }
    const DecodedInstruction& info = code_.fetch(linear);
    // Refused without the bytes that the engine wants of it.
    if (cpu_.traits.instructions >= InstructionSet::p6) features_.check(info);
    if (info.state != DecodeState::ok) code_.refuse_undefined(info, linear);
    // The block being translated reaches into an absent page, its first instruction does not.
    cpu_.engine.step_once();
  } catch (const PageFault& f) {
    delivery_.raise({14, f.error_code, f.address.value}, cpu_.ip(),
                    DeliveredEvent::Kind::exception);
  } catch (const CpuException& e) {
    delivery_.raise(e, cpu_.ip(), DeliveredEvent::Kind::exception);
  } catch (const CodeElsewhere&) {
    cpu_.engine.flush_tlb();
  }
}

/// Before the instruction at cpu_.linear, whose page the engine has elsewhere.
void InstructionRunner::ask_for_code_again() {
  if (++flight_.retries > kMaxNativeRetries) {
    char text[128];
    std::snprintf(text, sizeof text,
                  "the engine executes other code at linear %08" PRIx64 " than the processor",
                  cpu_.linear.value);
    throw ReplayStopped{cpu_.position, text};
  }
  // The engine never asks for the second page of an instruction that it refuses by its first bytes.
  cpu_.engine_code.forget(cpu_.linear);
  cpu_.engine_code.forget(cpu_.onward(cpu_.linear, kPageSize));
  cpu_.request(AfterStop::flush_tlb);
}

void InstructionRunner::finish_repeat() {
  flight_.wants_patch = false;
  cpu_.go_on_at(cpu_.onward(cpu_.linear, flight_.info->length));
  if (cpu_.traits.sixteen_bit) cpu_.engine.set_eip(cpu_.engine.eip() & 0xffff);
  complete_in_flight(cpu_.engine_address());
}

void InstructionRunner::meet(LinearAddr linear) {
  const bool completes = flight_.active && cpu_.by_blocks;
  if (!settle_before(linear)) return;
  if (completes) {  // what follows may be the fast tier's
    cpu_.linear = linear;
    return cpu_.request(AfterStop::resume);
  }
  do {
    begin(linear);
  } while (cpu_.after_stop == AfterStop::none && flight_.iterating && strings_.repeat());
}

void InstructionRunner::emulate() {
  try {
    emulator_.emulate();
  } catch (const NeedsMapping& n) {
    flight_.reads_to_skip = flight_.reads_told;
    flight_.active = false;
    cpu_.memory.ensure_mapped(n.page);
  } catch (const PageFault& f) {
    delivery_.raise({14, f.error_code, f.address.value}, cpu_.ip(),
                    DeliveredEvent::Kind::exception);
  } catch (const CpuException& e) {
    delivery_.raise(e, cpu_.ip(), DeliveredEvent::Kind::exception);
  }
}

void InstructionRunner::raise_found() {
  delivery_.raise(exception_, cpu_.ip(), DeliveredEvent::Kind::exception);
}

}  // namespace citcat
