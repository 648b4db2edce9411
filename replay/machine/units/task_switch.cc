#include "replay/machine/units/task_switch.h"

#include <array>

#include "events/machine/control_bits.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/stack_pusher.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

/// Where a task segment keeps the dynamic state (SDM vol. 3, figures 7-2 and 7-10).
struct TaskLayout {
  std::uint32_t cr3, eip, registers, segments, ldt, trap;
  std::uint32_t width;  ///< bytes of a register
  unsigned segment_count;
  std::uint32_t limit_to_save;  ///< last byte written when the task is left
  std::uint32_t limit_to_load;
};

constexpr TaskLayout kTask32{0x1c, 0x20, 0x28, 0x48, 0x60, 0x64, 4, 6, 0x5f, 0x67};

constexpr TaskLayout kTask16{0, 0x0e, 0x12, 0x22, 0x2a, 0, 2, 4, 0x29, 0x2b};

}  // namespace

/// What a task segment holds, as far as a switch to it loads it.
struct TaskSwitch::TaskState {
  std::uint32_t cr3 = 0, eip = 0, eflags = 0;
  std::array<std::uint32_t, 8> gpr{};
  std::array<std::uint16_t, 6> selectors{};  ///< in SegmentRegister order
  std::uint16_t ldt = 0;
  bool trap = false;  ///< T bit
};

Descriptor TaskSwitch::read_task_descriptor(std::uint16_t selector, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 4) != 0) throw CpuException{kProtection, error, 0};
  const Descriptor task = segments_.read_descriptor(selector, kProtection, ext);
  if (!task.is(SystemType::tss16) && !task.is(SystemType::tss32)) {
    throw CpuException{kProtection, error, 0};
  }
  if (!task.present()) throw CpuException{kNotPresent, error, 0};
  return task;
}

void TaskSwitch::return_to_previous() {
  const auto link = static_cast<std::uint16_t>(system_.read(LinearAddr{cpu_.engine.tr().base}, 2));
  const std::uint32_t error = link & 0xfffcu;
  if ((link & 4) != 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor task = segments_.read_descriptor(link, kInvalidTss, 0);
  if (!task.is(SystemType::busy_tss16) && !task.is(SystemType::busy_tss32)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!task.present()) throw CpuException{kNotPresent, error, 0};
  switch_to(task, TaskSource::iret, cpu_.engine.eip() + flight_.info->length, cpu_.engine.eflags(),
            0);
}

void TaskSwitch::switch_to(const Descriptor& task, TaskSource source, std::uint32_t saved_eip,
                           std::uint32_t saved_flags, std::uint32_t ext) {
  const bool wide = (task.type() & kWideTaskType) != 0;
  const TaskLayout& layout = wide ? kTask32 : kTask16;
  const Segment next = task.segment(task.selector);
  if (next.limit < layout.limit_to_load) {
    throw CpuException{kInvalidTss, (task.selector & 0xfffcu) | ext, 0};
  }
  const Segment old = cpu_.engine.tr();
  const TaskLayout& old_layout = (old.attributes & kWideTaskType) != 0 ? kTask32 : kTask16;
  if (old.limit < old_layout.limit_to_save) {
    throw CpuException{kInvalidTss, (old.selector & 0xfffcu) | ext, 0};
  }
  const bool nests = source == TaskSource::call || source == TaskSource::event;
  // SDM vol. 3, 7.3, step 4: both task segments are paged in before anything is stored.
  system_.page_in(linear32(old.base, old_layout.eip), linear32(old.base, old_layout.limit_to_save),
                  Access::write);
  if (nests) system_.page_in(LinearAddr{next.base}, linear32(next.base, 1), Access::write);
  system_.page_in(LinearAddr{next.base}, linear32(next.base, layout.limit_to_load), Access::read);
  if (!nests) {
    const LinearAddr at = linear32(cpu_.engine.gdtr().base, (old.selector & 0xfff8u) + 4);
    system_.write(at, system_.read(at, 4) & ~kDescBusy, 4);
  }
  if (source == TaskSource::iret) saved_flags &= ~kFlagNt;

  const auto save = [&](std::uint32_t offset, std::uint32_t value, std::uint32_t size) {
    system_.write(linear32(old.base, offset), value, size);
  };
  const std::uint32_t w = old_layout.width;
  save(old_layout.eip, saved_eip, w);
  save(old_layout.eip + w, saved_flags, w);
  for (unsigned i = 0; i < 8; ++i) {
    save(old_layout.registers + i * w, cpu_.engine.gpr(static_cast<int>(i)), w);
  }
  for (unsigned i = 0; i < old_layout.segment_count; ++i) {
    save(old_layout.segments + i * w, cpu_.engine.segment_selector(static_cast<int>(i)), 2);
  }
  if (nests) system_.write(LinearAddr{next.base}, old.selector, 2);
  const TaskState state = read_task(next.base, wide);
  if (source != TaskSource::iret) {
    system_.write(task.linear.plus32(4), system_.read(task.linear.plus32(4), 4) | kDescBusy, 4);
  }

  // From here on faults belong to the new task (SDM vol. 3, 7.3, "commit point").
  Segment tr = next;
  tr.attributes = static_cast<std::uint16_t>(tr.attributes | kDescBusy >> 8);
  cpu_.engine.set_tr(tr);
  enter_task(state, wide, nests, ext);
}

TaskSwitch::TaskState TaskSwitch::read_task(std::uint32_t base, bool wide) {
  const TaskLayout& layout = wide ? kTask32 : kTask16;
  const std::uint32_t w = layout.width;
  TaskState state;
  if (wide && (cpu_.engine.cr(0) & kCr0Pg) != 0)
    state.cr3 = system_.read(linear32(base, layout.cr3), 4);
  state.eip = system_.read(linear32(base, layout.eip), w);
  state.eflags = system_.read(linear32(base, layout.eip + w), w);
  for (unsigned i = 0; i < 8; ++i) {
    state.gpr[i] = system_.read(linear32(base, layout.registers + i * w), w);
    // The manuals do not say what becomes of the upper halves; the recorded machines set them.
    if (!wide) state.gpr[i] |= 0xffff0000;
  }
  for (unsigned i = 0; i < layout.segment_count; ++i) {
    state.selectors[i] =
        static_cast<std::uint16_t>(system_.read(linear32(base, layout.segments + i * w), 2));
  }
  state.ldt = static_cast<std::uint16_t>(system_.read(linear32(base, layout.ldt), 2));
  if (wide) state.trap = (system_.read(linear32(base, layout.trap), 2) & 1) != 0;
  return state;
}

void TaskSwitch::enter_task(const TaskState& state, bool wide, bool nested, std::uint32_t ext) {
  entered_ = true;
  cpu_.engine.set_cr(0, cpu_.engine.cr(0) | kCr0Ts);
  debug_.drop_local_breakpoints();
  for (unsigned i = 0; i < 8; ++i) cpu_.engine.set_gpr(static_cast<int>(i), state.gpr[i]);
  cpu_.engine.set_eip(state.eip);
  cpu_.engine.set_eflags(state.eflags | (nested ? kFlagNt : 0));
  const bool v86 = (state.eflags & kFlagVm) != 0;
  // Selectors are loaded whatever becomes of their descriptors.
  for (int i = 0; i < 6; ++i) {
    const std::uint16_t s = state.selectors[static_cast<std::size_t>(i)];
    cpu_.engine.set_segment(i, v86 ? Segment{s, std::uint32_t{s} << 4, 0xffff, 0xf3, false}
                                   : Segment{s, 0, 0, 0, true});
  }
  if (wide && (cpu_.engine.cr(0) & kCr0Pg) != 0 && state.cr3 != cpu_.engine.cr(3)) {
    cpu_.engine.set_cr(3, state.cr3);
    cpu_.engine.flush_tlb();
    cpu_.mmu.control_changed(true);
    cpu_.audience.address_space(state.cr3, cpu_.position);
  }
  cpu_.engine.sync_mode();
  load_task_ldt(state.ldt, ext);
  if (!v86) {
    const std::uint32_t cpl = state.selectors[kCs] & 3u;
    load_task_stack(state.selectors[kSs], cpl, ext);
    for (const int s : {kDs, kEs, kFs, kGs}) {
      load_task_data(s, state.selectors[static_cast<std::size_t>(s)], cpl, ext);
    }
    load_task_code(state.selectors[kCs], ext);
  }
  cpu_.engine.sync_mode();
  if (cpu_.engine.eip() > cpu_.engine.segment_limit(kCs)) throw CpuException{kProtection, ext, 0};
  if (state.trap) debug_.add_pending(DebugUnit::kTaskSwitch);
}

void TaskSwitch::load_task_ldt(std::uint16_t selector, std::uint32_t ext) {
  cpu_.engine.set_ldtr({selector, 0, 0, 0, true});
  if ((selector & 0xfffc) == 0) return;
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 4) != 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor ldt = segments_.read_descriptor(selector, kInvalidTss, ext);
  if (!ldt.is(SystemType::ldt) || !ldt.present()) throw CpuException{kInvalidTss, error, 0};
  cpu_.engine.set_ldtr(ldt.segment(selector));
}

void TaskSwitch::load_task_stack(std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 0xfffc) == 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor stack = segments_.read_descriptor(selector, kInvalidTss, ext);
  if (!stack.is_writable_data()) throw CpuException{kInvalidTss, error, 0};
  if (!stack.present()) throw CpuException{kStackFault, error, 0};
  if (stack.dpl() != cpl || stack.dpl() != (selector & 3u)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  segments_.mark_accessed(stack);
  cpu_.engine.set_segment(kSs, stack.segment(selector));
}

void TaskSwitch::load_task_data(int s, std::uint16_t selector, std::uint32_t cpl,
                                std::uint32_t ext) {
  if ((selector & 0xfffc) == 0) return;
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  const Descriptor data = segments_.read_descriptor(selector, kInvalidTss, ext);
  const bool privileged = !data.conforming() && (data.dpl() < cpl || data.dpl() < (selector & 3u));
  if (!data.is_readable() || privileged) throw CpuException{kInvalidTss, error, 0};
  if (!data.present()) throw CpuException{kNotPresent, error, 0};
  segments_.mark_accessed(data);
  cpu_.engine.set_segment(s, data.segment(selector));
}

void TaskSwitch::load_task_code(std::uint16_t selector, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 0xfffc) == 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor code = segments_.read_descriptor(selector, kInvalidTss, ext);
  const std::uint32_t rpl = selector & 3u;
  if (!code.is_code_of(rpl)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  segments_.mark_accessed(code);
  cpu_.engine.set_segment(kCs, code.segment(selector));
}

void TaskSwitch::deliver(std::uint16_t selector, const CpuException& exception,
                         const TaskReturn& from, std::uint32_t ext) {
  const Descriptor task = read_task_descriptor(selector, ext);
  switch_to(task, TaskSource::event, from.eip, from.eflags, ext);
  if (!exception.error_code) return;
  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), false, false};
  stack_.push(top, *exception.error_code, (task.type() & kWideTaskType) != 0 ? 4 : 2, ext);
  cpu_.engine.set_gpr(kEsp, top.esp);
}

}  // namespace citcat
