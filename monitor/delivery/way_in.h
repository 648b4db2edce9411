#pragma once
// The way into a handler of protected or long mode: what a processor reads on the way, and what it
// checks (Intel SDM vol. 2, INT n, operation; vol. 3, 6.12.1 and 6.14). Emulators report neither.

#include <cstdint>
#include <optional>

#include "monitor/log/interrupt_log.h"
#include "monitor/processor/table_entry.h"

namespace citcat::monitor {

/// The exception that ends it.
struct Refusal {
  unsigned vector = 0;
  std::uint32_t error_code = 0;
};

/// Makes the reads, and returns what is there.
class WayInMemory {
 public:
  virtual ~WayInMemory() = default;
  /// Reads 2, 4 or 8 bytes of a table or task segment, as the processor does: the bus shows it.
  virtual std::uint64_t read_for_processor(std::uint64_t linear, unsigned size) = 0;
};

class WayIn {
 public:
  /// `task_base`: of TR; outside 64-bit mode the state has only half of it.
  WayIn(WayInMemory& memory, const LoggedEvent& event, bool long_mode, std::uint64_t task_base)
      : memory_(memory), event_(event), long_mode_(long_mode), task_base_(task_base) {}

  /// Goes it, up to the first push. Nullopt where nothing refuses the delivery up to there. It ends
  /// at a task gate.
  std::optional<Refusal> go();

  bool is_task_gate() const { return !long_mode_ && gate.type() == 5; }
  bool is_wide() const { return long_mode_ || (gate.type() & 8) != 0; }

  TableEntry gate, code;
  std::optional<TableEntry> stack;  ///< the handler's, where the level changes outside long mode
  // Where it pushes, from `top` downwards.
  std::uint64_t stack_base = 0, top = 0, mask = 0;
  bool inner = false;  ///< at another privilege level, or on a stack of the interrupt stack table

 private:
  std::optional<Refusal> read_gate();
  std::optional<Refusal> read_code();
  std::optional<Refusal> read_stack();
  std::optional<Refusal> read_long_stack();
  bool read_entry(unsigned selector, TableEntry& entry);
  Refusal refused(unsigned vector, std::uint32_t what) const { return {vector, what | external()}; }
  /// EXT of an error code: the program did not ask for it.
  std::uint32_t external() const { return event_.software ? 0 : 1; }
  bool from_virtual8086() const { return (event_.before.eflags & kVirtual8086) != 0; }

  WayInMemory& memory_;
  const LoggedEvent& event_;
  const bool long_mode_;
  const std::uint64_t task_base_;
  std::uint32_t upper_dword_ = 0;  ///< of the offset, in a gate of long mode
};

/// What becomes of a second exception while the first one is delivered (Intel SDM vol. 3, table
/// 6-5). `first` is one, and no interrupt or INT n.
Refusal combined(unsigned first, const Refusal& second);

}  // namespace citcat::monitor
