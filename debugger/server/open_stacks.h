#pragma once
// The calls that are open on each stack. A stack is recognised by the part of it that was in use
// when the processor left it: a stack pointer in that part continues that stack, and one that lies
// in no such part begins a new stack. Slots of two stacks may lie close to each other, as those of
// a kernel's tasks do.

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
#include "events/position.h"

namespace citcat {

struct OpenCall {
  Position at;                      ///< of the call
  LinearAddr call;                  ///< the instruction
  LinearAddr target;                ///< where the procedure begins
  LinearAddr return_to;             ///< after the call
  LinearAddr slot;                  ///< of the return address
  std::uint64_t return_offset = 0;  ///< what lies there: an offset in CS
  unsigned slot_bytes = 4;
  AddressSpaceId space = 0;  ///< CR3, or OpenStacks::kSupervisor
};

class OpenStacks {
 public:
  /// The space of all stacks that no program of level 3 has.
  static constexpr AddressSpaceId kSupervisor = ~AddressSpaceId{0};

  /// What another stack takes over for.
  enum class Leave : std::uint8_t {
    task,    ///< something else: what is open here waits
    lend,    ///< what runs here, which comes back: a stack for interrupts, a handler's
    resume,  ///< the stack has served
  };
  /// The stack pointer is going to be loaded; `at`: what it is, where that is known.
  void leave(Leave how, std::optional<LinearAddr> at);
  /// The processor enters a handler, or a system call, from a stack pointer `from`.
  void enter(LinearAddr from, Position at);
  /// The same on the stack that runs: the handler's frame lies at `frame`.
  void enter_above(LinearAddr frame, Position at);
  /// The stack pointer is `top`: finds which stack runs, and ends the calls it has gone beyond.
  void settle(AddressSpaceId space, LinearAddr top);
  /// A frame at `frame` is the first thing on a stack that was entered from a program.
  void begin(LinearAddr frame);
  /// The handler goes back to what runs in `space` with a stack pointer `top`.
  void resume(AddressSpaceId space, LinearAddr top);

  /// A stack of that space runs, as far as is known.
  bool runs_in(AddressSpaceId space) const {
    return !unsure_ && !stacks_.empty() && stacks_.back().space == space;
  }

  void call(const OpenCall& call);
  /// A return took its address, of `bytes`, from there.
  void returned(AddressSpaceId space, LinearAddr slot);
  /// The call that was made last begins there.
  void arrive(LinearAddr target);

  /// What is open where the stack pointer is `top`: calls, the innermost first, and the positions
  /// of the entries among them.
  struct Open {
    std::vector<OpenCall> calls;
    std::vector<Position> entries;
  };
  Open open(AddressSpaceId space, LinearAddr top) const;

 private:
  struct Entry {
    LinearAddr frame;
    Position at;
  };
  /// What goes on when a stack has served.
  struct Below {
    std::uint64_t stack = 0;  ///< its number
    LinearAddr top;           ///< its stack pointer
    std::optional<Position> entered;
  };
  struct Stack {
    std::uint64_t number = 0;
    AddressSpaceId space = 0;
    std::deque<OpenCall> calls;  ///< by descending slots
    std::deque<Entry> entries;   ///< of handlers that run on it, by descending frames
    LinearAddr left_at;          ///< the stack pointer when another one took over
    std::optional<Below> below;
  };
  const Stack* find(AddressSpaceId space, LinearAddr top) const;
  const Stack* numbered(std::uint64_t number) const;
  bool comes_back_to(const Stack& stack) const;
  static void cut(Stack& stack, LinearAddr top);
  bool is_lent(AddressSpaceId space, LinearAddr top) const;
  void change_space(AddressSpaceId space);
  void make_current(AddressSpaceId space, LinearAddr top);

  std::list<Stack> stacks_;  ///< the one that runs last, before it those that ran before
  std::uint64_t made_ = 0;
  bool unsure_ = true;         ///< another stack than the last one may run
  std::optional<Below> from_;  ///< that one, if it is lent
};

}  // namespace citcat
