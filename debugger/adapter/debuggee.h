#pragma once
// One processor of the recorded machine, as an editor sees it: the target that gdb has, with names,
// source lines and calls.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "debugger/lines/source_lines.h"
#include "debugger/server/call_scan.h"
#include "debugger/server/monitor.h"
#include "debugger/target/debug_target.h"
#include "debugger/target/run_observer.h"
#include "events/names/symbols.h"

namespace citcat::dap {

/// As the protocol names a place in memory: "0x7c00".
std::string memory_reference(LinearAddr at);

/// The place of a return address, and the base of the code segment in which it is an offset.
struct ReturnSlot {
  LinearAddr at;
  unsigned bytes = 4;
  LinearAddr base = {};
};

/// A level of the stack of calls, the innermost first.
struct StackLevel {
  LinearAddr at = {};                      ///< the instruction that runs next, or the call
  std::optional<ReturnSlot> slot = {};     ///< has the return address of this level
  AddressSpaceId space = 0;                ///< OpenCall::space of the call
  std::optional<LinearAddr> returns = {};  ///< where it returns to
  std::optional<Position> called = {};     ///< position of the call
  bool is_interrupt = false;               ///< an interrupt or exception was entered here
  StackPlace interrupted = {};             ///< the stack of what it interrupted
};

class Debuggee {
 public:
  /// How far back calls are looked for, in instructions.
  static constexpr std::uint64_t kReach = 1'000'000;

  /// All must outlive the object.
  Debuggee(const RecordingFile& file, ComparisonPolicy policy, bool check, const Symbols& symbols,
           const SourceLines& lines, Monitor::TransactionText transaction_text);

  DebugTarget& target() { return target_; }
  const DebugTarget& target() const { return target_; }
  Monitor& monitor() { return monitor_; }
  const Symbols& symbols() const { return symbols_; }
  const SourceLines& lines() const { return lines_; }

  LinearAddr pc() const { return target_.next_instruction(); }
  LinearAddr stack() const { return stack_pointer(target_.machine()); }
  StackPlace stack_place() const { return citcat::stack_place(target_.machine()); }
  /// The instruction at the address, as the processor would decode it now; its length is 0 where
  /// its bytes are not known, or none.
  DecodedInstruction instruction_at(LinearAddr at) const;
  std::string text_at(LinearAddr at, const DecodedInstruction& info) const;
  /// "schedule+0x1c"; empty where the address has no name.
  std::string symbol_text(LinearAddr at) const;

  /// The calls, interrupts and exceptions that have not returned, as far as they began within
  /// kReach: looked for once at each place.
  const std::vector<StackLevel>& stack_levels(const DebugTarget::Interrupt& interrupt);

 private:
  OpenNest scan_calls(const DebugTarget::Interrupt& interrupt);

  RunObserver observer_;
  const Symbols& symbols_;
  const SourceLines& lines_;
  DebugTarget target_;
  Monitor monitor_;
  std::optional<Moment> levels_at_;
  std::vector<StackLevel> levels_;
};

}  // namespace citcat::dap
