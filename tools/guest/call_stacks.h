#pragma once
// Which procedures have been called and have not returned, on every stack of the machine at once.
//
// A call is known by the place of its return address, its *slot*. A return from a slot ends that
// call and all that were made above it, whatever became of those: that is what longjmp() and
// exceptions do. A switch of tasks shows in a return from the slot of another stack, which goes on
// then. A delivery begins a stack of its own above what it interrupts, and its IRET ends it.
// Handlers of signals lie above what they interrupt, at lower addresses, and go as they came.
//
// Instructions are counted by threads: those of a call are what its thread executed up to its
// return, the kernel's on its behalf included (faults and system calls), interrupts and other
// threads not.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/address.h"

namespace citcat::tools {

/// A procedure, as a number of whoever uses the stacks.
using ProcedureNumber = std::uint32_t;

struct CallFrame {
  ProcedureNumber procedure = 0;
  ProcedureNumber caller = 0;
  LinearAddr slot;
  std::uint64_t entered = 0;  ///< instructions that the thread had executed
  std::uint32_t path = 0;     ///< what CallListener::entered() returned
};

/// Is told when calls begin and end.
class CallListener {
 public:
  virtual ~CallListener() = default;
  /// A call of `procedure` begins within `under`, the innermost call of its thread that is open; null
  /// where there is none. Returns what is to be kept with it (CallFrame::path).
  virtual std::uint32_t entered(const CallFrame* /*under*/, ProcedureNumber /*procedure*/) {
    return 0;
  }
  /// `instructions` were executed meanwhile. `outermost`: no other call of the procedure, and
  /// `outermost_arc`: none by the same caller, is open on the stack.
  virtual void left(const CallFrame& frame, std::uint64_t instructions, bool outermost,
                    bool outermost_arc) = 0;
};

class CallStacks {
 public:
  /// Must outlive the object.
  explicit CallStacks(CallListener& listener);

  /// Instructions were executed.
  void executed(std::uint64_t instructions) { *current_->clock += instructions; }
  /// The last instruction did not complete.
  void taken_back() { --*current_->clock; }
  /// `space`: where the slot lies: CR3 of a program, kKernel of the kernel.
  void call(std::uint32_t space, LinearAddr slot, ProcedureNumber caller,
            ProcedureNumber procedure);
  /// A return took its address from there.
  void returned(std::uint32_t space, LinearAddr slot);
  /// What runs on this stack is that procedure: calls within the innermost call of it have ended,
  /// or all have where there is none.
  void leave_within(ProcedureNumber procedure);
  /// The innermost call goes on as another procedure: it jumped to its beginning.
  void becomes(ProcedureNumber procedure);
  /// A delivery, SYSENTER among them. `own`: what follows is no part of what was interrupted.
  void interrupted(bool own);
  /// IRET or SYSEXIT, with the page tables of CR3 in `address_space`.
  void resumed(std::uint32_t address_space);
  /// The stack pointer was loaded: the stack may be another one.
  void moved() { unsure_ = true; }
  /// The innermost call; null where none is open on this stack.
  const CallFrame* innermost() const {
    return current_->frames.empty() ? nullptr : &current_->frames.back();
  }
  /// The innermost call of the thread, where what runs is the kernel's on its behalf too; null where
  /// none is open.
  const CallFrame* innermost_of_thread() const { return innermost_of(*current_, depth()); }
  std::size_t depth() const { return current_->frames.size(); }
  /// Instructions that the thread that runs has executed. Threads are told apart by it: it lives as
  /// long as anything is known of the thread.
  using Clock = std::shared_ptr<const std::uint64_t>;
  Clock thread() const { return current_->clock; }
  /// The same of the thread whose call ended, within CallListener::left().
  Clock thread_left() const { return left_; }
  /// The run ends: all that is open is left.
  void end();

  static constexpr std::uint32_t kKernel = 0;

 private:
  struct Stack {
    std::uint32_t space = kKernel;
    std::vector<CallFrame> frames;  ///< by descending slots, but where another region was used
    std::shared_ptr<Stack> below;   ///< what goes on when this one has ended; may be null
    std::shared_ptr<std::uint64_t> clock;                     ///< of the thread
    std::unordered_map<ProcedureNumber, std::uint32_t> open;  ///< calls of each procedure
    std::unordered_map<std::uint64_t, std::uint32_t> open_arcs;
  };
  using StackPtr = std::shared_ptr<Stack>;
  using SlotKey = std::pair<std::uint32_t, std::uint64_t>;

  StackPtr stack_for(std::uint32_t space, LinearAddr slot);
  StackPtr make_stack(std::uint32_t space) const;
  static const CallFrame* innermost_of(const Stack& stack, std::size_t depth);
  void leave_top(Stack& stack);
  void leave_to(Stack& stack, std::size_t depth);

  CallListener& listener_;
  StackPtr current_;
  Clock left_;
  bool unsure_ = true;
  std::map<SlotKey, StackPtr> slots_;  ///< of all open calls
};

}  // namespace citcat::tools
