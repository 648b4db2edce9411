#pragma once
// Who called whom, as far as calls and returns tell: a tree of paths, each with what ran in it.
//
// A call pushes a frame that is known by where it stored its return address; a return pops the
// frame that stored it there, and all that were left without one (longjmp, tail calls). Each stack
// of the machine has frames of its own: of a program that of its address space, of the system the
// eight kilobytes that its stack pointer lies in (Linux on i386; sixteen on amd64), so that a task
// that is left and comes back finds its frames. A delivery is a frame, too.
//
// The system leaves a stack in two ways. A call whose return address is on another one goes on
// there, as handlers do on the stack for interrupts: the frames go along. A task is switched to
// when the stack pointer becomes that of one that was left: its last frame is of that stack, and is
// kept.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/export/step_stream.h"
#include "tools/host/names.h"

namespace citcat::tools {

class CallPaths {
 public:
  static constexpr std::uint32_t kRoot = 0;

  enum class Kind : std::uint8_t { root, process, system, function, interrupt, exception, call };
  /// One function in one place of the tree.
  struct Node {
    Kind kind = Kind::root;
    std::uint32_t parent = kRoot;
    std::uint64_t value = 0;    ///< address of a function, CR3 of a process, vector of a delivery
    std::uint32_t name = 0;     ///< of a function, in a list; 0: none is known
    std::uint64_t self = 0;     ///< instructions completed in it
    std::uint64_t entered = 0;  ///< times it was called
  };

  /// `names`, which may be null, must outlive the object.
  explicit CallPaths(const NameSource* names) : names_(names) {}

  /// Each step, in program order, before what happened behind it. Returns the node it ran in.
  /// `next`: the run where the next step begins; null: there is none.
  std::uint32_t step(const Step& step, const Context* next);
  void happened(const StepEvent& h);

  /// Parents come before their children.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// "process sh", "do_fork" or "c0123456", "interrupt 30".
  std::string name(const Node& node) const;

 private:
  struct Frame {
    std::uint32_t node = kRoot;
    std::uint64_t slot = 0;  ///< where the return address lies
  };
  using Stack = std::vector<Frame>;

  std::uint32_t child(std::uint32_t parent, Kind kind, std::uint64_t value, std::uint32_t name = 0);
  std::uint32_t function(std::uint32_t parent, LinearAddr at, const Context* context);
  void enter(Stack& stack, std::uint32_t node, std::uint64_t slot);
  Stack& stack_at(std::uint64_t stack, std::uint32_t level, std::uint32_t address_space);
  Stack& stack_of(const Step& step);
  Stack& stack_of_call(const Step& step, std::uint64_t slot);
  void begin_delivery(Stack& stack);
  void end_delivery(Stack& stack);
  void call(const Step& step, std::uint32_t node, const Context* next);
  void return_from(const Step& step);

  static std::uint64_t key(std::uint32_t parent, Kind kind, std::uint64_t value);

  /// A function as it was looked up: its beginning, where it has a name, and that.
  struct Place {
    std::uint64_t begin = 0;
    std::uint32_t name = 0;
  };

  const NameSource* names_;
  std::vector<std::string> function_names_{""};
  std::unordered_map<std::string, std::uint32_t> name_numbers_;
  /// By address space, then by address.
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Place>> places_;
  std::vector<Node> nodes_{Node{}};
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> children_;
  std::unordered_map<std::uint64_t, Stack> stacks_;
  std::uint64_t current_ = ~std::uint64_t{0};  ///< key of the stack that is in use
  std::uint32_t level_ = 4;                    ///< of the last step; 4: none
  std::uint32_t address_space_ = 0;            ///< of the last step
  bool delivered_ = false;                     ///< since the last step
  Kind delivery_ = Kind::interrupt;
  std::uint32_t vector_ = 0;
  std::uint64_t stack_ = 0;  ///< its pointer, at the last delivery
  bool returned_ = false;    ///< from a delivery, since the last step
};

}  // namespace citcat::tools
