#pragma once
// Interrupt handlers begin by saving registers. Until its first branch, a handler stores registers
// that it has not changed: these are the registers of the interrupted program. The same holds on
// any path that is known to be the right one.

#include <cstdint>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// A store of a general or segment register that still is what it was at the interrupt.
struct SavedRegister {
  bool is_segment = false;
  std::uint8_t number = 0;  ///< Gpr or SegmentRegister
  std::uint8_t size = 0;    ///< bytes stored, 2, 4 or 8, from the low end of the register
  PhysAddr address;         ///< as captured
};

/// Collects them from the delivery of an interrupt on, until the first instruction from which the
/// handler may go on in several ways.
class HandlerSaves final : public Observer {
 public:
  Interest interest() const override { return Interest::changes().before_judged(); }
  void watch(const Machine& machine) override { machine_ = &machine; }
  /// Forgets everything and waits for the next interrupt from outside.
  void begin();
  /// Goes on after conditional and indirect jumps, too: for a replay that is compared with the
  /// bus. `keeps_stack`: the interrupt does not change SS.
  void follow_branches(bool keeps_stack) {
    follows_branches_ = true;
    keeps_stack_ = keeps_stack;
  }
  /// Nothing more is collected until begin().
  void end() { state_ = State::idle; }
  const std::vector<SavedRegister>& saves() const { return saves_; }

  void instruction(const ExecutedInstruction& e, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;

 private:
  enum class State : std::uint8_t { idle, waiting, following };
  struct Store {
    PhysAddr address;
    std::uint8_t size = 0;
  };
  bool is_untouched(unsigned gpr) const { return (untouched_ >> gpr & 1) != 0; }
  void note_saves(const DecodedInstruction& info);
  void note_changes(const DecodedInstruction& info);
  void add(bool is_segment, unsigned number, const Store& store);

  const Machine* machine_ = nullptr;
  State state_ = State::idle;
  bool follows_branches_ = false, keeps_stack_ = false;
  /// Bit g: Gpr g is what it was at the interrupt. ESP is not: the delivery itself changes it.
  std::uint16_t untouched_ = 0;
  std::uint8_t untouched_segments_ = 0;
  std::vector<Store> stores_;  ///< of the instruction in progress
  std::vector<SavedRegister> saves_;
};

}  // namespace citcat
