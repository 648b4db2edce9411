#pragma once
// Port accesses of the instruction in flight, and the gate of address line 20 behind some ports.

#include <array>
#include <cstdint>
#include <optional>

#include "replay/machine/a20_gate.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class DebugUnit;
class Operands;
class SystemMemory;

/// Values come from the environment, which throws where nothing showed the access: take_back() then
/// undoes what the engine made of the instruction.
class PortAccesses {
 public:
  /// All must outlive the object.
  PortAccesses(CpuContext& cpu, InFlight& flight, DebugUnit& debug, SystemMemory& system,
               Operands& operands)
      : cpu_(cpu), flight_(flight), debug_(debug), system_(system), operands_(operands) {}

  /// At the beginning of a run: whether there is a gate.
  void begin(const CpuState& state) { has_a20_gate_ = follows_a20_gate(state); }
  /// Its state is part of the machine's.
  A20Gate& a20_gate() { return a20_gate_; }
  const A20Gate& a20_gate() const { return a20_gate_; }
  /// A port write has completed, which the engine made.
  void follow_a20_gate();

  /// EngineClient::on_in() and on_out().
  std::uint32_t read(std::uint16_t port, std::uint32_t size);
  /// IN and OUT, after OperandPreparation::prepare() has checked that they are allowed.
  void in();
  void out();
  void write(std::uint16_t port, std::uint32_t size, std::uint32_t value);
  /// Nothing showed the port access of the instruction in flight, or something else: it has not
  /// completed, whatever the engine made of it.
  void take_back();
  /// The permission bits of a port (SDM vol. 1, 19.5.2), where the processor asks for them: they
  /// are told, and throw where they refuse the access. The engine lets every one through.
  void check_permission();

 private:
  template <class F>
  void access(F&& access);
  std::uint16_t port() const;
  bool has_moved_a20_gate() const {
    return has_a20_gate_ && a20_gate_.mask() != cpu_.engine.a20_mask();
  }
  void move_a20_gate();
  bool follows_a20_gate(const CpuState& state) const;

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  SystemMemory& system_;
  Operands& operands_;

  /// The general registers before an access that was refused by an exception.
  std::optional<std::array<std::uint64_t, 8>> refused_port_access_;
  /// Processors from the 486 on mask bit 20 themselves; before, the gate is outside and the pins
  /// show the bit, unless the state dump says otherwise.
  bool has_a20_gate_ = false;
  A20Gate a20_gate_;
};

}  // namespace citcat
