// The processor's interface: passes each call on to a unit, and saves the state of the units as a
// value.

#include "replay/machine/machine.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "events/machine/cpu_traits.h"
#include "replay/machine/run/machine_units.h"
#include "replay/machine/units/table_descriptor.h"
#include "x86/early_cpu_quirks.h"

namespace citcat {

namespace {

/// False where the run is ended from inside `go`.
template <class F>
bool goes_through(F&& go) {
  try {
    go();
  } catch (const RunEnded&) {
    return false;
  }
  return true;
}

std::uint64_t joined(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}
std::uint32_t upper(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

/// The upper halves of registers whose lower ones are set.
void set_wide_registers(Engine& engine, const CpuState& state, const LongModeState& wide) {
  for (int i = 0; i < 8; ++i) {
    const auto n = static_cast<std::size_t>(i);
    engine.wide().set_gpr(i, joined(state.gpr[n], wide.gpr_high[n]));
    engine.wide().set_gpr(8 + i, wide.r[n]);
  }
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::size_t>(i);
    engine.wide().set_segment_base(i, joined(state.segment[n].base, wide.base_high[n]));
  }
  engine.wide().set_ldtr_base(joined(state.ldtr.base, wide.ldtr_base_high));
  engine.wide().set_tr_base(joined(state.tr.base, wide.tr_base_high));
  engine.wide().set_gdtr_base(joined(state.gdtr.base, wide.gdtr_base_high));
  engine.wide().set_idtr_base(joined(state.idtr.base, wide.idtr_base_high));
  engine.set_rip(joined(state.eip, wide.rip_high));
  engine.wide().set_cr(0, joined(state.cr0, wide.cr0_high));
  engine.wide().set_cr(2, joined(state.cr2, wide.cr2_high));
  engine.wide().set_cr(3, joined(state.cr3, wide.cr3_high));
  engine.wide().set_cr(4, joined(state.cr4, wide.cr4_high));
  engine.set_efer(wide.efer);
}

/// The reverse; what is not kept here stays.
void save_wide_registers(const Engine& engine, LongModeState& wide) {
  for (int i = 0; i < 8; ++i) {
    const auto n = static_cast<std::size_t>(i);
    wide.gpr_high[n] = upper(engine.wide().gpr(i));
    wide.r[n] = engine.wide().gpr(8 + i);
  }
  for (int i = 0; i < 6; ++i) {
    wide.base_high[static_cast<std::size_t>(i)] = upper(engine.wide().segment_base(i));
  }
  wide.ldtr_base_high = upper(engine.wide().ldtr_base());
  wide.tr_base_high = upper(engine.wide().tr_base());
  wide.gdtr_base_high = upper(engine.wide().gdtr_base());
  wide.idtr_base_high = upper(engine.wide().idtr_base());
  wide.rip_high = upper(engine.rip());
  wide.cr0_high = upper(engine.wide().cr(0));
  wide.cr2_high = upper(engine.wide().cr(2));
  wide.cr3_high = upper(engine.wide().cr(3));
  wide.cr4_high = upper(engine.wide().cr(4));
  wide.efer = engine.efer();
}

std::array<std::uint64_t, 8> debug_registers(const CpuState& state) {
  std::array<std::uint64_t, 8> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = joined(state.dr[i], state.long_mode ? state.long_mode->dr_high[i] : 0);
  }
  return all;
}

}  // namespace

Machine::Machine(CpuModel model, const BusModel& bus, Environment& environment,
                 const Listeners& listeners, ExecutionPath path)
    : units_(std::make_unique<MachineUnits>(model, bus, environment, listeners, path)),
      cpu_(units_->cpu) {}

Machine::~Machine() = default;

bool Machine::run(Position until) {
  return goes_through([&] { units_->loop.run(until); });
}

void Machine::tell_counts() { units_->fast.tell_counts(); }

bool Machine::interrupt(std::uint8_t vector, DeliveredEvent::Kind kind) {
  return goes_through([&] { units_->delivery.interrupt(vector, kind); });
}

bool Machine::system_management_interrupt(std::uint8_t revision) {
  return goes_through([&] { units_->smm.interrupt(revision); });
}

void Machine::external_write(PhysAddr captured, std::span<const std::uint8_t> data) {
  const bool goes_on =
      goes_through([&] { cpu_.audience.external_write(captured, data, cpu_.position); });
  if (goes_on) cpu_.memory.external_write(captured, data);
}

void Machine::drop_translation(LinearAddr page) {
  const bool goes_on =
      goes_through([&] { cpu_.audience.translation_dropped(page, cpu_.position); });
  if (goes_on) cpu_.mmu.drop(page);
}

void Machine::correct(PhysAddr captured, std::span<const std::uint8_t> bytes) {
  cpu_.audience.correct(captured, bytes);
}

// ---------------------------------------------------------------------------------------------
// What it can be asked

LinearAddr Machine::next_linear() const {
  const bool begun = units_->flight.active;
  return begun ? cpu_.linear : cpu_.engine_address();
}

std::uint32_t Machine::level_before() const { return units_->flight.hflags_before & kHfCpl; }

std::optional<PhysAddr> Machine::find(LinearAddr address) const {
  const auto found = cpu_.mmu.look_up(address, Access::read, Who::anybody, Lookup::free);
  if (!found) return std::nullopt;
  return found->frame.plus32(address.offset_in_page());
}

MachineStats Machine::stats() const {
  MachineStats stats = cpu_.stats;
  stats.decoded = units_->code.decoded() + units_->fast.blocks().decoded();
  stats.blocks = units_->fast.blocks().made();
  stats.blocks_dropped = units_->fast.blocks().dropped();
  const Mmu::Stats& mmu = cpu_.mmu.stats();
  stats.page_walks = mmu.walks;
  stats.quiet_walks = mmu.quiet_walks;
  stats.tlb_flushes = mmu.flushes;
  return stats;
}

std::optional<std::uint32_t> Machine::smbase() const { return units_->smm.smbase(); }

std::uint32_t Machine::reserved_bits() const {
  return units_->smm.reserved_bits() | units_->extended_state.reserved_bits();
}

std::uint64_t Machine::model_specific_results() const {
  return units_->fpu.model_specific_results();
}

const std::optional<ModelSpecific>& Machine::first_model_specific() const {
  return units_->fpu.first_model_specific();
}

FlagEffect Machine::take_untold_flags() {
  return std::exchange(units_->expectation.untold_flags, {});
}

bool Machine::in_floating_point() const { return units_->flight.is_floating_point(); }

bool Machine::in_string_copy() const { return units_->flight.copies_string(); }

LinearAddr Machine::accessed() const { return units_->flight.accessed; }

bool Machine::in_port_input() const { return units_->flight.inputs_port(); }

bool Machine::knows_order_of_stores() const {
  if (!cpu_.real_16_bit()) return false;
  const DecodedInstruction* const info = units_->flight.info;
  return info == nullptr || (!is_enter(*info) && info->kind != InstructionClass::x87);
}

// ---------------------------------------------------------------------------------------------
// The state as a value: registers and checkpoints

void Machine::load(const CpuState& state, const MemoryImage& image) {
  loaded_ = state;
  cpu_.memory.load(image, state.ram_bytes);
  std::uint32_t mxcsr_mask = 0;
  std::memcpy(&mxcsr_mask, &state.fx[28], 4);
  units_->fpu.set_mxcsr_mask(mxcsr_mask);
  set_registers(state);
  cpu_.resume_flag = (state.eflags & kFlagRf) != 0;
  units_->ports.begin(state);
  cpu_.mmu.state_loaded();
  cpu_.audience.introduce(*this);
}

void Machine::set_registers(const CpuState& state) {
  units_->model_registers.load(state);
  units_->debug.load(debug_registers(state));
  Engine& engine = cpu_.engine;
  for (int i = 0; i < 8; ++i) engine.set_gpr(i, state.gpr[static_cast<std::size_t>(i)]);
  for (int i = 0; i < 6; ++i) engine.set_segment(i, state.segment[static_cast<std::size_t>(i)]);
  engine.set_ldtr(state.ldtr);
  engine.set_tr(state.tr);
  engine.set_gdtr(state.gdtr);
  engine.set_idtr(state.idtr);
  engine.set_eip(state.eip);
  const bool protected_16_bit = (state.cr0 & 1) != 0;
  engine.set_eflags(cpu_.traits.sixteen_bit
                        ? loaded_flags(cpu_.model, protected_16_bit, state.eflags)
                        : state.eflags);
  engine.set_cr(0, state.cr0);
  engine.set_cr(2, state.cr2);
  engine.set_cr(3, state.cr3);
  engine.set_cr(4, state.cr4);
  if (state.long_mode) {
    set_wide_registers(engine, state, *state.long_mode);
    cpu_.cr8 = state.long_mode->cr8;
    units_->control.take_loaded();
    units_->extended_state.load(state);
  }
  units_->features.take();
  // 8086-class and 286 machines gate A20 outside the processor; 20 pins wrap by themselves.
  engine.set_a20_mask(cpu_.traits.has_a20() ? state.a20_mask : 0xfffff);
  engine.write_fx(state.fx);
  engine.clear_inhibit();
  engine.sync_mode();
  engine.flush_tlb();
  cpu_.halted = state.halted;
  units_->ports.a20_gate().load(state.a20_mask);
  units_->smm.load(state);
  cpu_.resume_flag = (state.eflags & kFlagRf) != 0;
  engine.drop_resume_flag();
}

CpuState Machine::save() const {
  const Engine& engine = cpu_.engine;
  CpuState s = loaded_;
  for (int i = 0; i < 8; ++i) s.gpr[static_cast<std::size_t>(i)] = engine.gpr(i);
  for (int i = 0; i < 6; ++i) s.segment[static_cast<std::size_t>(i)] = engine.segment(i);
  s.ldtr = engine.ldtr();
  s.tr = engine.tr();
  s.gdtr = engine.gdtr();
  s.idtr = engine.idtr();
  s.eip = engine.eip();
  s.eflags = cpu_.flags();
  s.cr0 = engine.cr(0);
  s.cr2 = engine.cr(2);
  s.cr3 = engine.cr(3);
  s.cr4 = engine.cr(4);
  s.a20_mask = engine.a20_mask();
  for (std::size_t i = 0; i < s.dr.size(); ++i) {
    const std::uint64_t value = units_->debug.registers()[i];
    s.dr[i] = static_cast<std::uint32_t>(value);
    if (s.long_mode) s.long_mode->dr_high[i] = upper(value);
  }
  if (s.long_mode) {
    save_wide_registers(engine, *s.long_mode);
    s.long_mode->cr8 = cpu_.cr8;
    s.long_mode->xcr0 = units_->extended_state.components();
  }
  units_->model_registers.save(s);
  s.halted = cpu_.halted;
  units_->smm.save(s);
  engine.read_fx(s.fx);
  std::copy_n(loaded_.fx.begin() + 28, 4, s.fx.begin() + 28);  // MXCSR_MASK never changes
  return s;
}

Machine::Snapshot Machine::snapshot() const {
  Snapshot s;
  s.cpu = save();
  s.position = cpu_.position;
  s.pages = cpu_.memory.save_changed();
  s.tlb = cpu_.mmu.save();
  s.model_specific_results = units_->fpu.model_specific_results();
  s.resume_flag = cpu_.resume_flag;
  s.interrupts_inhibited = cpu_.engine.inhibited();
  s.shut_down = cpu_.shut_down;
  s.awaits_output_port = units_->ports.a20_gate().awaits_output_port();
  s.in_stack_shadow = units_->debug.in_stack_shadow();
  s.debug_pending = units_->debug.pending();
  s.smbase = s.cpu.smbase;
  return s;
}

void Machine::Snapshot::set_register(const std::string& name, std::uint64_t value) {
  citcat::set_register(cpu, name, value);
  std::erase(cpu.unknown, name);
  smbase = cpu.smbase;
}

void Machine::restore(const Snapshot& s, const MemoryImage& image) {
  MachineUnits& units = *units_;
  units.flight.discard();
  cpu_.memory.restore(image, s.pages);
  set_registers(s.cpu);
  if (s.interrupts_inhibited) cpu_.engine.step_once();
  cpu_.engine.flush_tlb();
  cpu_.mmu.restore(*s.tlb);
  cpu_.position = s.position;
  // Between two iterations the next report of this place continues the same REP.
  cpu_.linear = cpu_.engine_address();
  cpu_.code.forget();
  // Translations and their templates stay: those of frames that held something else are gone with
  // what the memory took back.
  units.fast.forget_translations();
  cpu_.resume_flag = s.resume_flag;
  units.flight.resuming = false;
  units.fpu.restore_results(s.model_specific_results);
  cpu_.shut_down = s.shut_down;
  units.ports.a20_gate().set_awaits_output_port(s.awaits_output_port);
  if (s.in_stack_shadow) {
    units.debug.shade(s.position.instruction);
  } else {
    units.debug.shade_nothing();
  }
  units.debug.set_pending(s.debug_pending);
  units.smm.set_smbase(s.smbase);
  cpu_.halted = s.cpu.halted;
}

}  // namespace citcat
