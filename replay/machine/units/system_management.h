#pragma once
// System management mode (Intel SDM vol. 3, chapter 34): an SMI saves the processor's state in
// memory and starts the handler; RSM takes it back from there. Both are on the bus.

#include <array>
#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "x86/smm_save_map.h"

namespace citcat {

class DebugUnit;
class Retirement;

/// Holds SMBASE. Saving and restoring use the map of the saved state (smm_save_map.h), and are
/// reported as AccessKind::system. If SMBASE is not known, the replay stops.
class SystemManagement {
 public:
  /// All must outlive the object.
  SystemManagement(CpuContext& cpu, InFlight& flight, DebugUnit& debug, Retirement& retirement)
      : cpu_(cpu), flight_(flight), debug_(debug), retirement_(retirement) {}

  /// Takes what the state says.
  void load(const CpuState& state);
  /// Tells it.
  void save(CpuState& state) const;
  /// Whether it is known stays as it was.
  void set_smbase(std::uint32_t smbase) { smbase_ = smbase; }
  /// nullopt if neither the state nor an SMI has shown it.
  std::optional<std::uint32_t> smbase() const {
    return smbase_known_ ? std::optional(smbase_) : std::nullopt;
  }
  /// Bits that no manual defines in the dword whose write is being reported.
  std::uint32_t reserved_bits() const { return reserved_bits_; }

  /// Machine::system_management_interrupt().
  void interrupt(std::uint8_t revision);
  /// RSM: made and retired.
  void leave_handler();

 private:
  Segment saved_segment(unsigned index) const;
  std::uint64_t saved_base(unsigned index) const;
  std::uint64_t saved_value(SmmField field) const;
  std::uint32_t saved_word(SmmField field) const;
  const SmmSaveMap& map_of(std::uint8_t revision) const;
  std::array<std::uint32_t, kSmmSavedWords> saved_state(const SmmSaveMap& map) const;
  std::array<std::uint32_t, kSmmSavedWords> unspecified_state(const SmmSaveMap& map) const;
  void save_state(const SmmSaveMap& map);
  void require_smbase() const;
  void set_saved_segment(unsigned index, const Segment& segment);
  void restore_saved_segment(SmmField field, std::uint32_t word);
  void restore_saved(SmmField field, std::uint32_t word);
  void restore_upper(SmmField field, std::uint32_t word);
  /// The registers are restored.
  void take_restored();
  void mode_replaced();

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  Retirement& retirement_;

  bool active_ = false;
  std::uint32_t smbase_ = kResetSmbase;
  bool smbase_known_ = true;
  std::uint32_t reserved_bits_ = 0;
};

}  // namespace citcat
