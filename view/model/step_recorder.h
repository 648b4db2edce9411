#pragma once
// A stretch of a run cut into steps, each from one moment to the next, with all that it read and
// wrote: made of what ReplayTimeline::tell_on() tells access by access.
//
// A step is an instruction that completes, an iteration of a REP, or an instruction that faults and
// the delivery of its exception. Interrupts that are delivered after it belong to it, because the
// next moment comes after them.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/machine/cpu_state.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "replay/session/moment.h"
#include "x86/decode/instruction_class.h"

namespace citcat::view {

struct StepAccess {
  PhysAddr physical;
  LinearAddr linear;  ///< 0 where the processor itself accessed tables, or another bus master wrote
  AccessKind kind = AccessKind::data;
  bool write = false, outside = false;
  std::uint32_t size = 0;
  std::size_t bytes = 0;  ///< where its bytes begin in RecordedStep::bytes
  bool known = true;      ///< else some byte that was read has no known value
};

struct StepPort {
  std::uint16_t port = 0;
  bool write = false;
  std::uint32_t size = 0, value = 0;
};

struct StepEvent {
  enum class Kind : std::uint8_t { delivered, halted, shutdown } kind = Kind::delivered;
  DeliveredEvent delivery;
  Position at = {};  ///< in the run: behind the instruction that an interrupt follows
};

/// What another bus master wrote, as it was captured.
struct OutsideWrite {
  Position at;
  PhysAddr physical;
  std::uint32_t size = 0;
};

/// Valid during the call.
struct RecordedStep {
  Moment before, after;
  LinearAddr linear;  ///< of the instruction
  PhysAddr physical;  ///< of its first byte, where it was fetched
  std::array<std::uint8_t, 15> code{};
  std::uint8_t length = 0;  ///< bytes of code; 0: it could not be fetched
  std::uint8_t bits = 32;   ///< of the code segment: 16, 32 or 64
  InstructionClass kind = InstructionClass::plain;
  bool repeated = false;   ///< an iteration of a REP
  bool completed = false;  ///< else it faulted
  std::span<const StepAccess> accesses;
  std::span<const std::uint8_t> bytes;
  std::span<const StepPort> ports;
  std::span<const StepEvent> events;
  std::span<const OutsideWrite> outside;
  const CpuState* state_after = nullptr;
};

class StepSink {
 public:
  virtual ~StepSink() = default;
  /// Where the stretch begins.
  virtual void begins(const Moment& /*moment*/, const CpuState& /*state*/) {}
  virtual void step(const RecordedStep& step) = 0;
  /// All of it was recorded; the machine is where it ends.
  virtual void ends(const Moment& /*moment*/) {}
};

class StepRecorder final : public Observer {
 public:
  /// The machine is at `begin`. All must outlive the object. `beside`, which may be null, observes
  /// instructions and deliveries, each after `sink` has got the steps before it.
  StepRecorder(const Machine& machine, Moment begin, StepSink& sink, Observer* beside = nullptr)
      : machine_(machine),
        sink_(sink),
        beside_(beside),
        deliveries_(begin.deliveries),
        after_(machine.save()) {}
  /// The machine is at `end`, where the stretch ends.
  void finish(Moment end);

  Interest interest() const override { return Interest::everything(); }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;

 private:
  struct Access : StepAccess {
    std::vector<std::uint8_t> data;
  };
  void begin(Position now);
  void close(Moment after);
  void take(Access access, Position now);
  void note_code();
  bool begins_instruction(Position now) const;
  Access access_at(PhysAddr a, std::uint32_t size, AccessKind kind, bool write) const;

  const Machine& machine_;
  StepSink& sink_;
  Observer* const beside_;
  std::uint64_t deliveries_;
  bool open_ = false;
  RecordedStep step_;
  bool delivering_ = false;                 ///< something was, and the handler has not begun
  LinearAddr interrupted_;                  ///< by it
  std::vector<Access> accesses_, pending_;  ///< the latter are of the step that comes next
  std::vector<StepPort> ports_;
  std::vector<StepEvent> events_;
  std::vector<OutsideWrite> outside_;
  CpuState after_;                  ///< state after the step that was closed last
  bool faults_on_the_way_ = false;  ///< to the next instruction
};

}  // namespace citcat::view
