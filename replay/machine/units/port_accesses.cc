#include "replay/machine/units/port_accesses.h"

#include <algorithm>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

std::uint32_t PortAccesses::read(std::uint16_t port, std::uint32_t size) {
  std::uint32_t value = 0;
  access([&] {
    value = cpu_.environment.port_read(port, size, cpu_.position);
    cpu_.audience.end_if_asked(cpu_.position);
    cpu_.audience.io_read(port, size, value, cpu_.position);
  });
  if (debug_.breaks_on_ports()) [[unlikely]]
    debug_.check_port(port, size);
  return value;
}

void PortAccesses::write(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  access([&] {
    cpu_.environment.port_write(port, size, value, cpu_.position);
    cpu_.audience.io_write(port, size, value, cpu_.position);
  });
  if (debug_.breaks_on_ports()) [[unlikely]]
    debug_.check_port(port, size);
  if (has_a20_gate_) a20_gate_.port_write(port, size, value);
}

void PortAccesses::in() {
  const std::uint8_t size = flight_.info->operand_bytes;
  cpu_.set_low_part(kEax, read(port(), size), size);
}

void PortAccesses::out() {
  const std::uint8_t size = flight_.info->operand_bytes;
  write(port(), size, static_cast<std::uint32_t>(cpu_.low_part(kEax, size)));
  if (has_moved_a20_gate()) {
    move_a20_gate();
    cpu_.engine.flush_tlb();
  }
}

/// That of the instruction in flight.
std::uint16_t PortAccesses::port() const {
  const auto& operands = flight_.info->row->operands;
  const bool immediate = operands[0] == OperandForm::Ib || operands[1] == OperandForm::Ib;
  return static_cast<std::uint16_t>(immediate ? flight_.info->immediate : cpu_.engine.gpr(kEdx));
}

/// The engine goes on to the end of its instruction whether or not `access` throws.
template <class F>
void PortAccesses::access(F&& make) {
  try {
    make();
  } catch (...) {
    auto& registers = refused_port_access_.emplace();
    std::copy_n(cpu_.engine.gprs(), registers.size(), registers.begin());
    throw;
  }
}

void PortAccesses::take_back() {
  if (!refused_port_access_) return;
  int number = 0;
  for (const std::uint64_t value : *refused_port_access_) {
    cpu_.engine.wide().set_gpr(number++, value);
  }
  refused_port_access_.reset();
  cpu_.go_on_at(cpu_.linear);
  if (flight_.info->kind == InstructionClass::ins) operands_.put_back_overwritten();
  flight_.active = false;
  flight_.iterating = false;
}

void PortAccesses::follow_a20_gate() {
  if (!has_moved_a20_gate()) return;
  move_a20_gate();
  cpu_.after_stop = AfterStop::flush_tlb;
}

void PortAccesses::check_permission() {
  const std::uint32_t flags = cpu_.engine.system_flags();
  if ((cpu_.engine.hflags() & kHfPe) == 0) return;
  const bool v86 = (flags & kFlagVm) != 0;
  if (!v86 && (cpu_.engine.hflags() & kHfCpl) <= (flags >> 12 & 3)) return;
  constexpr std::uint32_t kMapBase = 0x66;
  constexpr CpuException kRefused{13, 0u, 0};
  const Segment task = cpu_.engine.tr();
  if ((task.attributes & kWideTaskType) == 0 || task.limit < kMapBase + 1) throw kRefused;
  // Two bytes are read, whatever the size of the access: it may reach into the next one.
  const LinearAddr base{cpu_.engine.wide().tr_base()};
  const std::uint32_t at = system_.read(cpu_.onward_in_system(base, kMapBase), 2) + port() / 8u;
  if (at + 1 > task.limit) throw kRefused;
  const std::uint32_t wanted = ((1u << flight_.info->operand_bytes) - 1) << port() % 8;
  if ((system_.read(cpu_.onward_in_system(base, at), 2) & wanted) != 0) throw kRefused;
}

/// The port write just completed opened or closed the gate.
void PortAccesses::move_a20_gate() {
  cpu_.engine.set_a20_mask(a20_gate_.mask());
  cpu_.mmu.set_a20_mask(a20_gate_.mask());
  cpu_.code.forget();
}

/// From the 486 on the processor itself masks the bit. Before, the pins show it, and the gate
/// after them is followed only where the dump has it closed. An 8088 has no such bit.
bool PortAccesses::follows_a20_gate(const CpuState& state) const {
  if (!cpu_.traits.has_a20()) return false;
  return !cpu_.traits.a20_outside || (state.a20_mask & A20Gate::kBit) == 0;
}

}  // namespace citcat
