#pragma once
// The events of a stretch of a run, from ReplayTimeline::tell(): events in their order, interrupts
// that have not returned, address spaces.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/machine/address_space.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Where the stack pointer is.
struct StackPlace {
  /// CR3 of a program of level 3, or OpenStacks::kSupervisor.
  AddressSpaceId space = 0;
  LinearAddr top;
};

/// "interrupt 30h", "exception 0eh (page fault)", "SMI": kind, vector and its name.
std::string event_name(const DeliveredEvent& event);

/// Each event as a line.
class EventLog final : public Observer {
 public:
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

  const std::vector<std::pair<Position, std::string>>& lines() const { return lines_; }

 private:
  std::vector<std::pair<Position, std::string>> lines_;
};

/// Deliveries whose handler has not returned, the one entered first in front. Handlers of other
/// processes may wait among them: the place of the frame that an IRET takes shows which one it
/// ends. In real mode handlers return by RETF 2 or IRET, or go on elsewhere with the stack put
/// right: one is over when the stack has its frame no longer. A task that an interrupt entered
/// through a task gate is not followed. SYSENTER and SYSCALL enter a handler, too, where whoever
/// tells of the run tells them (StopJudge does not): it is over where the processor goes back to
/// the stack that the program had.
class InterruptNest final : public Observer {
 public:
  /// The machine whose run is followed; it must outlive the object.
  explicit InterruptNest(const Machine& machine) : machine_(machine) {}

  struct Entered {
    DeliveredEvent event;  ///< says nothing where `call` entered
    Position at;
    AddressSpaceId cr3 = 0;
    LinearAddr frame;  ///< of the return address; of a `call` the program's stack pointer
    /// The stack base of a delivery in real mode; nullopt in other modes.
    std::optional<std::uint32_t> real_stack = std::nullopt;
    /// The instruction that was interrupted, that faulted, or that called.
    LinearAddr from = {};
    InstructionClass call = InstructionClass::plain;  ///< SYSENTER or SYSCALL
    StackPlace stack = {};                            ///< of what was interrupted, or called
  };
  void delivered(const DeliveredEvent& event, Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;

  /// Those whose handlers have not returned where the machine is.
  std::vector<Entered> entered() const;
  /// Handlers that returned and had been entered before the stretch began.
  std::uint64_t entered_before() const { return entered_before_; }
  /// Where the frame of the last reported delivery lies.
  LinearAddr last_frame() const { return entered_.back().frame; }
  /// The stack pointer to which an IRET to level 3 goes back, read before it does.
  std::optional<std::uint64_t> programs_stack(const ExecutedInstruction& iret) const;

 private:
  LinearAddr frame_of(const DeliveredEvent& event) const;
  LinearAddr frame_in_long_mode(const DeliveredEvent& event) const;
  std::uint64_t value_at(LinearAddr linear, unsigned bytes) const;
  void called(const ExecutedInstruction& e, Position now);
  bool called_back(std::uint64_t stack_pointer);

  const Machine& machine_;
  std::vector<Entered> entered_;
  std::uint64_t entered_before_ = 0;
};

/// As event_name(), or "SYSENTER", "SYSCALL".
std::string entered_name(const InterruptNest::Entered& entered);

/// Which page directories were loaded, and how long each was in use.
class AddressSpaces final : public Observer {
 public:
  /// `cr3` is in use at `from`.
  AddressSpaces(AddressSpaceId cr3, Position from);
  void address_space(AddressSpaceId cr3, Position now) override;
  /// The stretch ends here.
  void end(Position now) { leave(now); }

  struct Space {
    Position first;
    std::uint64_t loads = 0, instructions = 0;
  };
  const std::map<AddressSpaceId, Space>& spaces() const { return spaces_; }

 private:
  void leave(Position now);

  std::map<AddressSpaceId, Space> spaces_;
  AddressSpaceId cr3_;
  Position since_;
};

/// Every access of a stretch to memory and ports, as a line.
class AccessLog final : public Observer {
 public:
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;

  const std::vector<std::pair<Position, std::string>>& lines() const { return lines_; }

 private:
  std::vector<std::pair<Position, std::string>> lines_;
};

}  // namespace citcat
