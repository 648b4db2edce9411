#pragma once
// The replayed processor: Unicorn's execution, completed as the architecture defines it.
//
// Ordinary code runs in the fast tier (fast/fast_tier.h). Every other instruction passes
// InstructionRunner::meet() before the engine executes it. There our own Mmu translates and checks
// its memory operands, so that faults, accessed bits and the order of accesses are the processor's;
// what the engine gets wrong is executed by the machine's own units (emulator.h); and the listeners
// are notified of what has completed since (audience.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/recording.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/environment.h"
#include "replay/machine/listeners.h"
#include "replay/machine/machine_stats.h"
#include "replay/machine/memory.h"
#include "replay/machine/mmu.h"
#include "replay/machine/model_specific.h"
#include "replay/machine/replay_stopped.h"
#include "x86/flag_effects.h"

namespace citcat {

struct MachineUnits;

/// The interface of the processor; the work is done in the units (machine_units.h).
class Machine {
 public:
  /// Whatever is passed by reference must outlive the machine. Processors before the 386, and
  /// listeners that want each access, get ExecutionPath::instructions whatever `path` says.
  Machine(CpuModel model, const BusModel& bus, Environment& environment, const Listeners& listeners,
          ExecutionPath path = ExecutionPath::instructions);
  ~Machine();

  /// Also introduces the machine to its listeners.
  void load(const CpuState& state, const MemoryImage& image);
  CpuState save() const;

  /// Everything that decides how the run goes on, at an instruction boundary or between iterations
  /// of a REP. Cheap to copy except for the frames written since load().
  struct Snapshot {
    CpuState cpu;
    Position position;
    Memory::SavedPages pages;
    std::shared_ptr<const Mmu::State> tlb;
    std::uint64_t model_specific_results = 0;
    bool resume_flag = false;
    bool interrupts_inhibited = false;  ///< in the shadow of STI or MOV SS
    bool shut_down = false;
    bool awaits_output_port = false;  ///< of the A20 gate's keyboard controller
    bool in_stack_shadow = false;     ///< SS was just loaded
    std::uint32_t debug_pending = 0;  ///< bits for DR6 of a trap held off by that
    std::uint32_t smbase = kResetSmbase;
    /// The register holds `value`, and is known, wherever the snapshot keeps it.
    void set_register(const std::string& name, std::uint64_t value);
  };
  Snapshot snapshot() const;
  /// `image` is the one given to load().
  void restore(const Snapshot& snapshot, const MemoryImage& image);

  Memory& memory() { return cpu_.memory; }
  const Memory& memory() const { return cpu_.memory; }
  Engine& engine() { return cpu_.engine; }
  /// Where an SMI would save its state; nullopt if neither the initial state nor an SMI has shown
  /// it.
  std::optional<std::uint32_t> smbase() const;
  const Engine& engine() const { return cpu_.engine; }
  const Mmu& mmu() const { return cpu_.mmu; }
  const BusModel& bus() const { return cpu_.bus; }
  CpuModel model() const { return cpu_.model; }

  Position position() const { return cpu_.position; }
  /// What it has done since it was made; restore() does not reset it.
  MachineStats stats() const;
  /// Results so far that differ from one processor model to the next (x87 transcendentals, RCPPS
  /// ...).
  std::uint64_t model_specific_results() const;
  /// The instruction that gave the first of them since load() or restore().
  const std::optional<ModelSpecific>& first_model_specific() const;
  /// The combined effect on the flags of all instructions since the last call that were not
  /// reported to the judge one by one.
  FlagEffect take_untold_flags();
  /// Bits that no manual defines in the dword being reported to write(): the state that an SMI
  /// saves has such bits.
  std::uint32_t reserved_bits() const;
  /// The instruction in progress works on floating-point or vector registers.
  bool in_floating_point() const;
  /// Whether the order in which the instruction in flight, or the delivery after it, stores is
  /// known to be the processor's, and not assumed (docs/fidelity.md, "Order and size of accesses").
  bool knows_order_of_stores() const;
  /// It is MOVS, repeated or not.
  bool in_string_copy() const;
  /// It is INS, repeated or not.
  bool in_port_input() const;
  /// Linear address of the data that is just being reported to observers one by one.
  LinearAddr accessed() const;
  bool halted() const { return cpu_.halted; }
  bool shut_down() const { return cpu_.shut_down; }

  /// Runs until the position is `until` or later, the processor halts or shuts down, or the
  /// environment wants a stop. False where control() ended the run before that, within an
  /// instruction. Throws ReplayStopped.
  bool run(Position until);
  /// Tells observers what was only counted so far (Observer::counted()): before anybody asks them.
  void tell_counts();
  /// For the judge, and for the code that drives the run.
  RunControl& control() { return cpu_.audience.control(); }
  const RunControl& control() const { return cpu_.audience.control(); }
  /// Whether the judge is called at all. Only for a judge that does not judge blocks.
  void set_judged(bool on) { cpu_.audience.set_judged(on); }
  /// Null while nothing is judged.
  BlockJudge* judge() const { return cpu_.audience.judge(); }
  /// Memory at an address as captured must hold these bytes from here on, whatever was computed.
  void correct(PhysAddr captured, std::span<const std::uint8_t> bytes);
  /// Linear address of the instruction that the position names: the next one, or the one at which
  /// run() was left by an exception.
  LinearAddr next_linear() const;
  /// The privilege level, 0 to 3, at which the instruction began that is just being reported to
  /// observers alone.
  std::uint32_t level_before() const;
  /// Where a linear address lies for the supervisor just now, looked up without any effect; nullopt
  /// where nothing is mapped, or no evidence tells.
  std::optional<PhysAddr> find(LinearAddr address) const;
  /// Decides how often page tables are read; the guest sees no difference.
  void set_walk_policy(WalkPolicy policy) { cpu_.mmu.set_walk_policy(policy); }
  void set_polling(bool on) { cpu_.polling = on; }

  /// Delivers INTR or NMI at the current position; wakes from HLT. False where control() ended the
  /// run within the delivery.
  bool interrupt(std::uint8_t vector, DeliveredEvent::Kind kind);
  /// Delivers an SMI at the current position; wakes from HLT. The low byte of the SMM `revision`
  /// identifier tells the map of the saved state; any that is not known means the P6 family's.
  /// False as of interrupt().
  bool system_management_interrupt(std::uint8_t revision);
  /// Changes memory as another bus master does.
  void external_write(PhysAddr captured, std::span<const std::uint8_t> data);
  /// The TLB loses its translation of a page, though nothing told it to.
  void drop_translation(LinearAddr page);

 private:
  void set_registers(const CpuState& state);

  const std::unique_ptr<MachineUnits> units_;
  CpuContext& cpu_;
  CpuState loaded_;
};

}  // namespace citcat
