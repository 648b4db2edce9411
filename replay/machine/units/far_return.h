#pragma once
// Far returns and IRET: those that the engine executes differently from the processor, or checks
// too late (Intel SDM vol. 2, RET and IRET).

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class Operands;
class Retirement;
class SegmentLoader;

/// Checks throw before anything is changed.
class FarReturn {
 public:
  /// All must outlive the object.
  FarReturn(CpuContext& cpu, InFlight& flight, Operands& operands, SegmentLoader& segments,
            Retirement& retirement)
      : cpu_(cpu),
        flight_(flight),
        operands_(operands),
        segments_(segments),
        retirement_(retirement) {}

  /// Whether the RET or RETF in flight is made here: of 32 KiB and more to be released the engine
  /// takes the number for a negative one, unless just 16 bits of it count; and in real and
  /// virtual-8086 mode it finds the selector at 10000 where the stack goes on at 0.
  bool returns_here() const;
  /// RETF. What OperandPreparation::prepare() tells has been told.
  void return_far();
  /// RETF and IRET to beyond the limit of their code segment, the last thing that is looked at
  /// before anything is changed (SDM vol. 2, RET and IRET). The engine does not look, and it
  /// refuses by itself what is to be refused for another reason.
  void check_return_target();
  /// IRET at level 3 whose image of EFLAGS has VM set. The flag is ignored there; the engine enters
  /// virtual-8086 mode.
  bool ignores_vm_flag();
  /// Whether the IRET in flight is one of 32 bits in protected mode, to protected mode and within
  /// its task.
  bool returns_from_interrupt();
  /// That IRET. What OperandPreparation::prepare() tells has been told.
  void return_from_interrupt();
  /// What lies `above` the stack pointer, as the program that runs may read it.
  std::uint32_t read_stack(std::uint32_t above, std::uint32_t width);
  /// That IRET, which from level 3 leads nowhere but to level 3.
  void return_within_level();
  /// Tells the descriptors that RETF or IRET reads.
  void tell_transfer_descriptors();

 private:
  void return_to_segment(std::uint16_t selector, std::uint32_t target, std::uint32_t released);
  std::optional<bool> image_has_vm();
  void load_flags(std::uint32_t image, std::uint32_t cpl);
  Segment outer_stack(std::uint32_t level, std::uint32_t released);
  std::uint32_t stacked(std::uint32_t offset, std::uint32_t size);
  bool code_admits_return(const Descriptor& code) const;
  bool stack_admits_return(std::uint32_t level, std::uint32_t released);
  void tell_stack_read(LinearAddr linear, std::uint32_t size);

  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;
  SegmentLoader& segments_;
  Retirement& retirement_;
};

}  // namespace citcat
