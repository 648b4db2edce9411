#include "replay/machine/units/long_mode_delivery.h"

#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/system_memory.h"

namespace citcat {

namespace {

// A task segment of long mode (SDM vol. 3, figure 7-11).
constexpr std::uint32_t kStacksOfLevels = 4, kInterruptStacks = 0x24;

}  // namespace

LongModeDelivery::Gate LongModeDelivery::read_gate(const LongModeEvent& event) {
  const std::uint32_t vector = event.exception.vector;
  const std::uint32_t error = vector * 8 + 2 + (event.software ? 0 : 1);
  const CpuException refused{kProtection, error, 0};
  if (vector * 16 + 15 > cpu_.engine.idtr().limit) throw refused;
  const LinearAddr at{cpu_.engine.wide().idtr_base() + vector * 16};
  Descriptor d;
  d.linear = at;
  d.low = system_.read(at, 4);
  d.high = system_.read(LinearAddr{at.value + 4}, 4);
  const auto upper = static_cast<std::uint32_t>(system_.read_wide(LinearAddr{at.value + 8}, 8));
  const bool traps = d.is(SystemType::trap_gate32);
  if (!traps && !d.is(SystemType::interrupt_gate32)) throw refused;
  if (event.software && d.dpl() < cpu_.cpl()) throw refused;
  if (!d.present()) throw CpuException{kNotPresent, error, 0};
  Gate gate;
  gate.selector = d.gate_selector();
  gate.offset = d.gate_offset() | std::uint64_t{upper} << 32;
  gate.stack = d.high & 7;
  gate.traps = traps;
  return gate;
}

Descriptor LongModeDelivery::read_handler(std::uint16_t selector, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 0xfffc) == 0) throw CpuException{kProtection, ext, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, ext);
  const bool wide = (code.high & kDescLong) != 0 && (code.high & kDescWide) == 0;
  if (!code.is_code() || !wide || code.dpl() > cpu_.cpl()) {
    throw CpuException{kProtection, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  return code;
}

std::uint64_t LongModeDelivery::task_segment_stack(std::uint32_t at) {
  const Segment task = cpu_.engine.tr();
  if (at + 7 > task.limit) throw CpuException{kInvalidTss, task.selector & 0xfffcu, 0};
  const std::uint64_t rsp = system_.read_wide(LinearAddr{cpu_.engine.wide().tr_base() + at}, 8);
  if (!CpuContext::is_canonical(rsp)) throw CpuException{kStackFault, 0u, 0};
  return rsp;
}

std::uint64_t LongModeDelivery::stack_pointer(const Gate& gate, bool inner, std::uint32_t level) {
  constexpr std::uint64_t kAligned = ~std::uint64_t{15};
  std::uint64_t rsp = cpu_.bits64() ? cpu_.engine.wide().gpr(kEsp) : cpu_.engine.gpr(kEsp);
  if (gate.stack != 0) {
    rsp = task_segment_stack(kInterruptStacks + 8 * (gate.stack - 1u));
  } else if (inner) {
    rsp = task_segment_stack(kStacksOfLevels + 8 * level);
  }
  return rsp & kAligned;
}

void LongModeDelivery::deliver(const LongModeEvent& event) {
  Engine& engine = cpu_.engine;
  const std::uint32_t ext = event.software ? 0 : 1;
  const Gate gate = read_gate(event);
  const Descriptor code = read_handler(gate.selector, ext);
  const std::uint32_t cpl = cpu_.cpl();
  const bool inner = !code.conforming() && code.dpl() < cpl;
  const std::uint32_t level = inner ? code.dpl() : cpl;
  std::uint64_t rsp = stack_pointer(gate, inner, level);
  if (!CpuContext::is_canonical(gate.offset)) throw CpuException{kProtection, ext, 0};
  const bool user = level == 3;
  const auto push = [&](std::uint64_t value) {
    rsp -= 8;
    if (!CpuContext::is_canonical(rsp)) throw CpuException{kStackFault, ext, 0};
    system_.push(LinearAddr{rsp}, value, 8, user);
  };
  const std::uint64_t old_rsp = cpu_.bits64() ? engine.wide().gpr(kEsp) : engine.gpr(kEsp);
  push(engine.segment_selector(kSs));
  push(old_rsp);
  push(event.flags);
  push(engine.segment_selector(kCs));
  push(event.return_ip);
  if (event.exception.error_code && !event.software) push(*event.exception.error_code);

  // From here on nothing can fault.
  segments_.mark_accessed(code);
  if (inner) {
    engine.set_segment(kSs, {static_cast<std::uint16_t>(level), 0, 0, 0, true});
  }
  engine.set_segment(kCs, code.segment(static_cast<std::uint16_t>((gate.selector & ~3u) | level)));
  engine.wide().set_gpr(kEsp, rsp);
  std::uint32_t flags = engine.eflags() & ~(kFlagTf | kFlagNt | kFlagRf | kFlagVm);
  if (!gate.traps) flags &= ~kFlagIf;
  engine.set_eflags(flags);
  engine.set_rip(gate.offset);
  engine.sync_mode();
}

}  // namespace citcat
