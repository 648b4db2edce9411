#pragma once
// The replay's side of a comparison with a processor, step by step: what surrounds its machine, and
// how a step ended.

#include <cstdint>
#include <string>
#include <vector>

#include "replay/machine/machine.h"
#include "silicon/quiet_environment.h"

namespace citcat::silicon {

/// What one side did with one instruction.
struct StepEnd {
  enum class Kind : std::uint8_t { retired, exception, not_comparable } kind = Kind::not_comparable;
  std::string why;  ///< of not_comparable
  CpuState cpu;     ///< of an exception: as its handler will find and restore it
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0;
  std::uint64_t cr2 = 0;
};

/// What surrounds the replay's processor: no ports, and a stop after each instruction or delivery.
class StepWorld final : public QuietEnvironment, public Observer {
 public:
  explicit StepWorld(ExecutionPath path) : path_(path) {}
  /// Forgets what was delivered; the next stop is before instruction `until` at the latest.
  void begin(std::uint64_t until);
  const std::vector<DeliveredEvent>& delivered() const { return delivered_; }

  bool wants_stop(Position next) override {
    return !delivered_.empty() || next.instruction >= until_;
  }
  Interest interest() const override;
  void delivered(const DeliveredEvent& event, Position) override { delivered_.push_back(event); }

 private:
  ExecutionPath path_;
  std::uint64_t until_ = 0;
  std::vector<DeliveredEvent> delivered_;
};

/// Has `machine` make `instructions` in `world`, its surroundings. Of an exception only that there
/// was one: the rest lies in the frame, and in StepWorld::delivered().
StepEnd replay_step(Machine& machine, StepWorld& world, unsigned instructions);

/// An exception with this vector pushes an error code (SDM vol. 3, table 6-1).
bool has_error_code(std::uint8_t vector);

}  // namespace citcat::silicon
