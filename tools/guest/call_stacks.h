#pragma once
// Which procedures have been called and have not returned, on every stack of the machine at once.
//
// A call is known by the place of its return address, its *slot*. A return from a slot ends that
// call and all calls made above it, however those ended: longjmp() and exceptions work in this way.
// A return from a slot of another stack shows a switch of tasks, and that stack goes on; a return
// from a region without slots shows a switch to a new task. A delivery begins a stack of its own
// above the code that it interrupts, and its IRET ends it. Handlers of signals lie above the code
// that they interrupt, at lower addresses, and return like any call.
//
// The kernel's stacks lie one after the other, each in a region of its own: eight kilobytes for
// Linux on i386, sixteen on amd64. If the slot of a call lies in another region than the last one,
// the call goes on there, as handlers do on the stack for interrupts.
//
// Instructions are counted by thread: a call has those that its thread executed up to the return,
// including the kernel's work for it (faults and system calls), but not interrupts and other
// threads.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"

namespace citcat::tools {

/// A procedure, as a number that the user of the stacks gives.
using ProcedureNumber = std::uint32_t;

/// Where something runs: a number of the listener's.
using CallPath = std::uint32_t;

struct CallFrame {
  ProcedureNumber procedure = 0;
  ProcedureNumber caller = 0;
  LinearAddr slot;
  std::uint64_t entered = 0;  ///< instructions that the thread had executed
  CallPath path = 0;          ///< what CallListener::entered() returned
  /// It runs on its stack because nobody called it there within the run: a handler, what a program
  /// begins with, what ran first. It is below all calls, and has no slot.
  bool is_base = false;
};

/// How the kernel was entered.
struct KernelEntry {
  enum class Kind : std::uint8_t { interrupt, exception, call };
  Kind kind = Kind::interrupt;
  std::uint8_t vector = 0;  ///< 0 of a call
};

/// Is notified when calls begin and end. Code without a path of the listener has 0.
class CallListener {
 public:
  virtual ~CallListener() = default;
  /// A stack is met first: of a program with that CR3, or of the kernel. Returns the path of what
  /// runs there outside of all procedures.
  virtual CallPath began(AddressSpaceId /*space*/) { return 0; }
  /// The same of what an entry to the kernel makes run on behalf of what runs on `under`, or, of an
  /// interrupt, in its place.
  virtual CallPath handles(CallPath under, const KernelEntry& entry) {
    return entry.kind == KernelEntry::Kind::interrupt ? 0 : under;
  }
  /// A call of `procedure` begins within what runs on `under`, or it goes on there without one
  /// (`is_base`, CallFrame::is_base). Returns its own path.
  virtual CallPath entered(CallPath /*under*/, ProcedureNumber /*procedure*/, bool /*is_base*/) {
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
  void call(AddressSpaceId space, LinearAddr slot, ProcedureNumber caller,
            ProcedureNumber procedure);
  /// A return took its address from there.
  void returned(AddressSpaceId space, LinearAddr slot);
  /// What runs on this stack is that procedure: calls within the innermost call of it have ended,
  /// or all have where there is none.
  void leave_within(ProcedureNumber procedure);
  /// The innermost call goes on as another procedure: it jumped to its beginning.
  void becomes(ProcedureNumber procedure);
  /// What runs in that space, where nothing is open: its own stack, or that it had last.
  void runs_in(AddressSpaceId space);
  /// The procedure runs on this stack, on which nothing is open (CallFrame::is_base).
  void begin(ProcedureNumber procedure);
  /// A delivery, SYSENTER among them. What follows an interrupt is no part of what was interrupted.
  void interrupted(const KernelEntry& entry);
  /// IRET or SYSEXIT, with the page tables of CR3 in `address_space`.
  void resumed(AddressSpaceId address_space);
  /// The stack pointer was loaded: the stack may be another one.
  void moved() { unsure_ = true; }
  /// The innermost call, or what runs without one; null where neither is known on this stack.
  const CallFrame* innermost() const {
    return current_->frames.empty() ? nullptr : &current_->frames.back();
  }
  /// The call that runs now.
  CallPath path() const { return path_of(*current_, current_->frames.size()); }
  AddressSpaceId space() const { return current_->space; }
  /// Calls that are open on this stack.
  std::size_t depth() const { return current_->calls(); }
  /// Instructions that the thread that runs has executed. Threads are distinguished by it: it lives
  /// as long as anything is known of the thread.
  using Clock = std::shared_ptr<const std::uint64_t>;
  Clock thread() const { return current_->clock; }
  /// The same of the thread whose call ended, within CallListener::left().
  Clock thread_left() const { return left_; }
  /// The run ends: all that is open is left.
  void end();

  static constexpr std::uint32_t kKernel = 0;

 private:
  static constexpr std::uint32_t kNowhere = ~0u;  ///< before anything ran
  /// Entries to the kernel that are kept, at least, of those that lie within each other.
  static constexpr std::uint32_t kDeepest = 1 << 12;
  struct Stack {
    ~Stack();
    AddressSpaceId space = kKernel;
    CallPath base = 0;              ///< of what runs where no frame is
    std::vector<CallFrame> frames;  ///< by descending slots, but where another region was used
    std::shared_ptr<Stack> below;   ///< what goes on when this one has ended; may be null
    std::uint32_t depth = 0;        ///< how many are below
    std::shared_ptr<std::uint64_t> clock;                     ///< of the thread
    std::unordered_map<ProcedureNumber, std::uint32_t> open;  ///< calls of each procedure
    std::unordered_map<std::uint64_t, std::uint32_t> open_arcs;

    std::size_t calls() const {
      return frames.size() - (!frames.empty() && frames.front().is_base ? 1 : 0);
    }
  };
  using StackPtr = std::shared_ptr<Stack>;
  using SlotKey = std::pair<AddressSpaceId, std::uint64_t>;

  void forget_outermost();
  StackPtr stack_above(AddressSpaceId space, LinearAddr slot) const;
  StackPtr stack_for(AddressSpaceId space, LinearAddr slot);
  StackPtr make_stack(AddressSpaceId space);
  static StackPtr bare_stack(AddressSpaceId space);
  static CallPath path_of(const Stack& stack, std::size_t depth);
  void returned_unknown(AddressSpaceId space, LinearAddr slot);
  void leave_top(Stack& stack);
  void leave_to(Stack& stack, std::size_t depth);

  CallListener& listener_;
  StackPtr current_;
  Clock left_;
  bool unsure_ = true;
  std::map<SlotKey, StackPtr> slots_;  ///< of all open calls
  /// The stack that each program used last.
  std::unordered_map<AddressSpaceId, StackPtr> programs_;
};

}  // namespace citcat::tools
