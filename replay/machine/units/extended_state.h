#pragma once
// XSAVE and what belongs to it: XCR0, XGETBV, XSETBV, XRSTOR (Intel SDM vol. 1, chapter 13). The
// components of the x87 unit and of SSE are supported; others are refused by name when XCR0 enables
// them.

#include <array>
#include <cstdint>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class FloatingPoint;
class ModelRegisters;
class Operands;

/// The instruction in flight, of a processor with long mode. All but load() throw what the
/// processor would, before anything is stored or loaded.
class ExtendedState {
 public:
  /// All must outlive the object.
  ExtendedState(CpuContext& cpu, InFlight& flight, const ModelRegisters& model_registers,
                Operands& operands, FloatingPoint& fpu)
      : cpu_(cpu),
        flight_(flight),
        model_registers_(model_registers),
        operands_(operands),
        fpu_(fpu) {}

  /// Takes XCR0 of the state; where that does not say it, all that the processor has, as systems
  /// set it. Throws UsageError where it has more than is executed.
  void load(const CpuState& state);
  /// XCR0.
  std::uint64_t components() const { return components_; }

  void get();      ///< XGETBV
  void set();      ///< XSETBV
  void save();     ///< XSAVE, XSAVEOPT, XSAVEC
  void restore();  ///< XRSTOR

  /// The bits of the store in progress that are the processor's choice. XSTATE_BV may name a
  /// component that is in its initial configuration, or not (SDM vol. 1, 13.6).
  std::uint32_t reserved_bits() const;

 private:
  struct Range;

  void require_enabled() const;
  void require_available() const;
  void require_supervisor() const;
  std::uint32_t requested() const;
  std::uint64_t supported() const;
  void find_area();
  void access(Range range, bool write);
  void read(Range range, std::uint8_t* to);
  void store_header(std::uint32_t wanted, std::uint32_t in_use, std::vector<std::uint8_t>& stored);
  void check_compacted(const std::array<std::uint64_t, 3>& header);
  Range xmm_registers() const;

  CpuContext& cpu_;
  InFlight& flight_;
  const ModelRegisters& model_registers_;
  Operands& operands_;
  FloatingPoint& fpu_;

  std::uint64_t components_ = 1;
  LinearAddr area_;  ///< of XSAVE or XRSTOR in flight
  LinearAddr header_;
  std::uint32_t free_bits_ = 0;  ///< of XSTATE_BV
};

}  // namespace citcat
