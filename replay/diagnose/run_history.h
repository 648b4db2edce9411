#pragma once
// A stretch of a replay, kept step by step: which instructions ran, and what each read and wrote.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "events/port_transfers.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// One access of a step; what it reads or writes besides registers.
struct HistoryAccess {
  enum class Kind : std::uint8_t {
    read,
    write,
    walk,       ///< page tables
    port_read,  ///< or a part of one: `number` is its place among the recording's
    port_write,
    external,  ///< another bus master wrote; `number` is its place among those of the run
  };
  Kind kind = Kind::read;
  PhysAddr address;  ///< as captured; or the port
  std::uint32_t size = 0;
  std::uint64_t number = 0;
  std::uint64_t value = 0;  ///< of writes: the first eight bytes
};

struct HistoryStep {
  enum class Kind : std::uint8_t {
    instruction,
    unfinished,  ///< the instruction that the history ends in; its bytes may be missing
    delivery,    ///< of an interrupt or exception: what was pushed
    external,    ///< another bus master
  };
  Kind kind = Kind::instruction;
  Position position;
  LinearAddr linear;
  PhysAddr physical;
  std::uint8_t bits = 32;  ///< default size of the code segment: 16, 32 or 64
  std::uint8_t length = 0;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  InstructionClass instruction_class = InstructionClass::plain;
  FlagRule flag_rule = FlagRule::none;
  std::uint32_t first_access = 0, accesses = 0;

  std::span<const std::uint8_t> code() const { return {bytes.data(), length}; }
};

/// Records while it is switched on, including what the judge refuses.
class RunHistory final : public Observer {
 public:
  /// Longest history, in steps: some 100 MB.
  static constexpr std::size_t kMostSteps = std::size_t{1} << 20;

  /// The history of a replay of `recording` by `schedule`, which must outlive this.
  RunHistory(const Recording& recording, const Schedule& schedule)
      : events_(schedule), port_bus_(recording.bus, recording.initial.model) {}
  void watch(const Machine& machine) override { machine_ = &machine; }
  /// Forgets everything and records from here, where so many of the schedule's port reads and
  /// external writes have been made.
  void begin(std::uint64_t port_reads, std::uint64_t external_writes);
  /// Stops recording; accesses of an instruction that did not complete become its step.
  void end();

  const std::vector<HistoryStep>& steps() const { return steps_; }
  std::span<const HistoryAccess> accesses(const HistoryStep& step) const {
    return std::span(accesses_).subspan(step.first_access, step.accesses);
  }
  /// More was run than kept: the oldest steps are missing.
  bool complete() const { return !full_; }

  Interest interest() const override { return Interest::everything().before_judged(); }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;

 private:
  void add(const HistoryAccess& access, Position now);
  HistoryStep& close(HistoryStep::Kind kind, Position now);
  void close_delivery();

  const Schedule& events_;
  PortBus port_bus_;
  const Machine* machine_ = nullptr;
  bool recording_ = false, full_ = false;
  std::uint64_t port_reads_ = 0, external_writes_ = 0;
  std::vector<HistoryStep> steps_;
  std::vector<HistoryAccess> accesses_;
  std::size_t open_from_ = 0;  ///< accesses of the step in progress
  Position open_at_;
  std::optional<std::pair<Position, std::uint64_t>> delivered_;  ///< its frame is being stored
  PhysAddr fetched_;
  LinearAddr fetched_linear_;
  std::uint32_t fetched_size_ = 0;
  std::uint8_t bits_ = 32;
};

}  // namespace citcat
