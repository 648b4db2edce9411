#include "replay/machine/run/run_loop.h"

#include <cinttypes>
#include <cstdio>

#include "formats/io/error.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/fast_tier.h"
#include "replay/machine/missing_memory.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/run/instruction_runner.h"
#include "replay/machine/run/translation_watch.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/early_quirks.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/flag_correction.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

void RunLoop::run(Position until) {
  cpu_.until = until;
  cpu_.audience.control().settle();
  cpu_.audience.forget_answer();
  cpu_.find_block_limit();
  if (expectation_.compares) expectation_.update();
  try {
    while (!cpu_.halted && !cpu_.shut_down) {
      if (!step()) return;
    }
  } catch (const UndefinedMemory& u) {
    cpu_.go_on_at(cpu_.linear);
    flight_.active = false;
    char text[160];
    std::snprintf(text, sizeof text,
                  "read of memory that no evidence defines (%s, %u bytes at physical %08" PRIx64
                  ")",
                  u.what, u.size, u.address.value);
    throw MissingMemory{{cpu_.position, text}, u.address, u.size};
  } catch (...) {
    units_.ports.take_back();
    throw;
  }
}

/// Begins the next instruction without the engine, which is to execute it unless true is returned.
bool RunLoop::begin_here() {
  if (flight_.active || flight_.resuming || (cpu_.engine.system_flags() & kFlagTf) != 0 ||
      cpu_.engine.inhibited() || units_.patcher.is_active()) {
    return false;
  }
  units_.instructions.meet(cpu_.engine_address());
  if (cpu_.after_stop != AfterStop::none) return true;
  flight_.resuming = true;
  cpu_.engine.step_once();
  return false;
}

/// One run of the engine. False at the position where run() ends.
bool RunLoop::step() {
  cpu_.after_stop = AfterStop::none;
  rights_.stale = true;
  if (cpu_.by_blocks) {
    units_.fast.run();
    if (begin_here()) {
      finish_step();
      return cpu_.after_stop != AfterStop::at_position;
    }
  }
  ++cpu_.stats.engine_runs;
  const EngineStop stop = cpu_.engine.run();
  const bool was_patched = units_.patcher.is_active();
  if (was_patched) units_.patcher.restore();
  if (units_.patcher.has_code_to_forget()) units_.patcher.forget_code();
  if (stop == EngineStop::translation_fault) return resolve_translation_fault(was_patched);
  if (stop != EngineStop::requested) {
    char text[160];
    std::snprintf(text, sizeof text, "the engine stopped: %s (EIP %08" PRIx64 ")",
                  cpu_.engine.failure().c_str(), cpu_.ip());
    throw ReplayStopped{cpu_.position, text};
  }
  finish_step();
  return cpu_.after_stop != AfterStop::at_position;
}

bool RunLoop::resolve_translation_fault(bool was_patched) {
  units_.instructions.resolve_translation_fault();
  if (was_patched && flight_.active && flight_.resuming) units_.patcher.patch();
  return cpu_.after_stop != AfterStop::at_position;
}

/// Puts the engine where the instruction is that was asked about, and does what was asked for.
void RunLoop::finish_step() {
  switch (cpu_.after_stop) {
    case AfterStop::native_fault:
    case AfterStop::finish_repeat:
      break;  // the engine is elsewhere
    default:
      cpu_.go_on_at(cpu_.linear);
  }
  if (cpu_.after_stop != AfterStop::at_position) do_as_asked();
}

void RunLoop::do_as_asked() {
  switch (cpu_.after_stop) {
    case AfterStop::emulate:
      return units_.instructions.emulate();
    case AfterStop::raise:
      return units_.instructions.raise_found();
    case AfterStop::map_page:
      return units_.instructions.map_page();
    case AfterStop::fix_flags:
      return units_.flag_correction.apply();
    case AfterStop::native_fault:
      return units_.instructions.handle_native_fault();
    case AfterStop::segment_end:
      return units_.early.deliver_segment_end();
    case AfterStop::patch:
      return units_.patcher.patch();
    case AfterStop::finish_repeat:
      return units_.instructions.finish_repeat();
    case AfterStop::flush_tlb:
      return cpu_.engine.flush_tlb();
    case AfterStop::debug_trap:
      return units_.delivery.take_debug_trap();
    case AfterStop::resume:
      return;
    case AfterStop::forget_code:
      return units_.watch.forget_code();
    case AfterStop::at_position:
    case AfterStop::none:
      throw InternalError("the engine stopped without a reason");
  }
}

}  // namespace citcat
