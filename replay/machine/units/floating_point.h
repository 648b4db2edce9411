#pragma once
// x87, MMX and SSE instructions that run on the host's unit (HostFpu).

#include <cstdint>
#include <memory>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/model_specific.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/fx_image.h"

namespace citcat {

class HostFpu;
class Operands;

/// The registers are the engine's; they are taken from it for each instruction and put back.
class FloatingPoint {
 public:
  /// All must outlive the object.
  FloatingPoint(CpuContext& cpu, InFlight& flight, Operands& operands);

  ~FloatingPoint();

  /// Bits of MXCSR that the processor has.
  void set_mxcsr_mask(std::uint32_t mask);
  /// Throws #MF where the x87 unit has an exception pending.
  void check_pending();
  /// Results so far that implementations compute differently (x87 transcendentals, RCPPS ...).
  std::uint64_t model_specific_results() const { return model_specific_results_; }
  /// Goes on counting from here.
  void restore_results(std::uint64_t count) {
    model_specific_results_ = count;
    first_model_specific_.reset();
  }
  /// The instruction that gave the first of them since restore_results().
  const std::optional<ModelSpecific>& first_model_specific() const { return first_model_specific_; }

  /// Makes the instruction in flight, and its stores.
  void execute();
  /// The unit's state as FXSAVE shows it, and its replacement (HostFpu::shown(), take()).
  FxImage shown(bool wide_pointers);
  void take(const FxImage& shown, bool wide_pointers);
  std::uint32_t accepted_mxcsr() const;
  /// Throws #UD or #NM where CR0 and CR4 do not admit an instruction of this class.
  void check_available(InstructionClass kind) const;
  /// The engine executed MMX or EMMS: what that does to the x87 unit beside it.
  void note_mmx();

 private:
  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;

  std::unique_ptr<HostFpu> unit_;
  std::uint64_t model_specific_results_ = 0;
  std::optional<ModelSpecific> first_model_specific_;
};

}  // namespace citcat
