#pragma once
// The processors of a recorded machine as a debugger sees them: each moves in its own replay, and
// together they keep the order of the bus that they share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "debugger/target/debug_target.h"
#include "events/processors/bus_turns.h"

namespace citcat {

/// How a move of a machine ended, and at which of its processors.
struct MachineMoveEnd {
  MoveEnd end;
  std::size_t processor = 0;
};

class MachineTarget {
 public:
  using Interrupt = DebugTarget::Interrupt;
  /// For each write of another bus master in the recording of a processor, whether another
  /// processor made it.
  using ForeignWrites = std::function<std::vector<bool>(std::size_t processor)>;
  /// The processors, in the order of their numbers, must outlive the object. If `foreign`, which
  /// may be empty, says that another processor made a write, a move ends at that processor, and
  /// does not end again at the one that notices the write.
  MachineTarget(std::vector<DebugTarget*> processors, BusTurns turns, ForeignWrites foreign = {});

  std::size_t size() const { return processors_.size(); }
  DebugTarget& processor(std::size_t p) { return *processors_[p]; }
  const DebugTarget& processor(std::size_t p) const { return *processors_[p]; }

  void insert(StopKind kind, LinearAddr address, std::uint32_t size);
  void remove(StopKind kind, LinearAddr address, std::uint32_t size);

  // Moves of processor `p`. The others go as far as the bus shows them meanwhile; forwards and in
  // go_back() the move ends where one of them meets a stop before. `alone`: they stay where they
  // are; a later move catches up. A processor in a branch moves alone.
  MachineMoveEnd step(std::size_t p, bool alone, const Interrupt& interrupt);
  MachineMoveEnd step_in_range(std::size_t p, LinearAddr first, std::uint32_t size, bool alone,
                               const Interrupt& interrupt);
  MachineMoveEnd go_on(std::size_t p, bool alone, const Interrupt& interrupt);
  MachineMoveEnd step_back(std::size_t p);
  MachineMoveEnd go_back(std::size_t p, const Interrupt& interrupt);
  /// Takes the others to where the bus shows them when `p` is where it is.
  void follow(std::size_t p);

 private:
  enum class Direction : std::uint8_t { on, back };
  /// What a processor has come to, looking for a stop.
  struct Found {
    bool searched_out = false;  ///< none can be found
    std::optional<MoveEnd> met;
    std::uint64_t turn = 0;
  };

  /// Where the processors stood when a move began, to come back to.
  class Start {
   public:
    explicit Start(MachineTarget& machine);
    ~Start();
    Start(const Start&) = delete;
    Start& operator=(const Start&) = delete;
    std::uint64_t instruction(std::size_t p) const { return moments_[p].position.instruction; }
    void return_to(std::size_t p) const;

   private:
    MachineTarget& machine_;
    std::vector<Moment> moments_;
    std::vector<std::size_t> marks_;
  };

  bool moves_alone(std::size_t p, bool alone);
  bool is_foreign(std::size_t p, const StopHit& hit);
  std::uint64_t turn_of(std::size_t p) const;
  std::uint64_t turn_met(std::size_t p, const MoveEnd& end) const;
  void take_to(std::size_t p, std::uint64_t instruction);
  void take_others(std::size_t p, std::uint64_t turn, const Start& start, Direction direction);
  std::optional<std::size_t> earliest(const std::vector<Found>& found) const;
  void search_on(std::size_t p, std::uint64_t turn, Found& found, const Interrupt& interrupt,
                 bool& interrupted);
  bool is_untold_breakpoint(std::size_t p) const;
  std::optional<MachineMoveEnd> others_met(std::size_t p, const Interrupt& interrupt);
  MachineMoveEnd told(MachineMoveEnd end);

  std::vector<DebugTarget*> processors_;
  BusTurns turns_;
  /// By processor: where a stop was reported last, so that it is not reported again.
  std::vector<std::optional<Moment>> told_;
  const ForeignWrites foreign_;
  /// For each processor, whether another processor made a write of another bus master, by address
  /// and position. Filled in when first needed.
  using KnownWrites = std::map<std::pair<PhysAddr, Position>, bool>;
  std::vector<std::optional<KnownWrites>> known_;
  bool alone_ = false;  ///< the others do not move
};

}  // namespace citcat
