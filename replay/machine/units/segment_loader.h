#pragma once
// Descriptors, and what loads them (Intel SDM vol. 3, 3.4.5 and chapter 5).

#include <array>
#include <cstdint>
#include <optional>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class ModelRegisters;
class Operands;
class SystemMemory;

/// Reads of descriptors are reported as the processor makes them. The engine sets accessed and busy
/// bits of what it loads by itself: those are found and reported when the instruction has
/// completed.
class SegmentLoader {
 public:
  /// All must outlive the object.
  SegmentLoader(CpuContext& cpu, InFlight& flight, SystemMemory& system, Operands& operands,
                const ModelRegisters& model_registers)
      : cpu_(cpu),
        flight_(flight),
        system_(system),
        operands_(operands),
        model_registers_(model_registers) {}

  /// Reads a descriptor, and tells so. Throws vector `fault` where its table has none; `ext`: that
  /// bit of the error code.
  Descriptor read_descriptor(std::uint16_t selector, std::uint8_t fault, std::uint32_t ext);
  /// Reads the upper half of the base or offset of a 16-byte descriptor. The dword after it must
  /// be 0 where a type would be. Throws #GP where it is not, or lies beyond the table.
  std::uint64_t read_upper_half(const Descriptor& d);
  /// Sets and tells the accessed bit, where it is not set.
  void mark_accessed(const Descriptor& d);
  /// Where the descriptor's type byte lies, when `selector` names one within its table.
  std::optional<LinearAddr> descriptor_type_byte(std::uint16_t selector) const;
  /// A descriptor whose read has been reported already; false if its table has none.
  bool look_up(std::uint16_t selector, Descriptor& out);
  /// A return to the outer `level` leaves what that may not use null. A base stays.
  void drop_inner(int s, std::uint32_t level);
  /// Before a return to an outer level that the engine makes.
  void watch_return();
  /// Tells the read of a descriptor that the engine will make.
  void tell_descriptor(std::uint16_t selector);
  /// LAR, LSL, VERR and VERW look a descriptor up.
  void tell_looked_up();
  /// Before the instruction in flight loads a selector.
  void watch();
  /// And after it.
  void report_watched();
  /// After a far transfer that the engine made.
  void mark_transfer_accessed();
  /// LES and its like. What OperandPreparation::prepare() looks at and watches has been looked at.
  void load_far_pointer();
  /// MOV to and POP of a segment register, for which the same holds.
  void load_segment();

 private:
  /// What a register holds, with all of its base.
  struct Loaded {
    Segment segment;
    std::uint64_t base = 0;
  };

  Loaded loaded(int s) const;
  void set_loaded(int s, const Loaded& loaded);
  void drop_returned(std::uint32_t level);
  void require_task_of_mode(std::uint16_t selector) const;
  void check_null_stack(std::uint16_t selector) const;
  std::optional<LinearAddr> entry_of(std::uint16_t selector) const;
  std::uint16_t operand_selector();
  Segment loaded_segment(int s, std::uint16_t selector);
  void mark_watched();

  CpuContext& cpu_;
  InFlight& flight_;
  SystemMemory& system_;
  Operands& operands_;
  const ModelRegisters& model_registers_;

  std::array<Loaded, 6> before_return_;     ///< of the registers that watch_return() names
  std::optional<std::uint64_t> kept_base_;  ///< which the load of a null selector leaves

  struct {
    bool active = false;
    PhysAddr physical;
    std::uint8_t before = 0;
  } watched_;  ///< type byte of a descriptor being loaded
};

}  // namespace citcat
