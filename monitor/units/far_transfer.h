#pragma once
// IRET, far RET, and JMP and CALL to another segment or task: what a processor does with stacks,
// descriptors and task segments where the emulator differs. Where that cannot be shown, the
// recording ends. The emulator's behaviour is that of QEMU 10.0, target/i386/tcg/seg_helper.c and
// emit.c.inc.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "monitor/processor/observation.h"

namespace citcat::monitor {

class FarTransfer {
 public:
  explicit FarTransfer(Observation& seen)
      : seen_(seen), cpu_(seen.cpu), flight_(seen.flight), tables_(seen.tables) {}

  /// An instruction begins that is none.
  void clear();
  /// One begins.
  void begin(const Insn& insn);
  /// The instruction in flight switches tasks.
  bool switches_task() const { return task_.has_value(); }
  /// A state was seen with this task register: the new task has run since.
  bool has_left_task(std::uint32_t selector) const {
    return task_ && task_->old_task.selector != selector;
  }
  /// It has read a dword: the second one of a task segment's descriptor begins a switch, or else a
  /// fault; that of a call gate or code segment says where it goes.
  void note_descriptor(std::uint64_t linear, std::uint32_t high);
  /// The first entry of the GDT, which no processor reads: a gate's selector may be null, and the
  /// emulator looks for that afterwards.
  bool reads_null_descriptor(std::uint64_t linear);
  /// What a processor moves of `value` while it switches tasks.
  std::span<const std::uint8_t> as_switched(const Insn& insn, bool store, std::uint64_t linear,
                                            std::span<const std::uint8_t> value);
  /// What it takes of `value` from the stack in IRET and far RET: selectors are words there, which
  /// the emulator takes for dwords.
  std::span<const std::uint8_t> as_returned(const Insn& insn, std::uint64_t linear,
                                            std::span<const std::uint8_t> value);
  /// The linear address of the first access of IRET and far RET.
  std::uint64_t first_access() const { return first_access_; }
  /// It has ended. `after`: the state it left, where the processor has gone on since.
  void finish(const LoggedState* after);
  /// It has raised an exception: another one than on a processor?
  void refuse_wrong_exception(const LoggedEvent& event);

 private:
  void refuse_wrapped_return(const Insn& insn);
  void refuse_wrong_end(const LoggedState* after);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Flight& flight_;
  DescriptorTables& tables_;
  unsigned level_ = 0;             ///< privilege level before it
  bool from_virtual8086_ = false;  ///< it began in virtual-8086 mode
  bool to_virtual8086_ = false;    ///< IRET has read EFLAGS with VM set
  std::uint64_t first_access_ = 0;
  std::optional<TableEntry> gate_, code_;  ///< that it has read: a call gate, a code segment's
  struct TaskSwitch {
    LoggedSegment old_task;
    std::uint32_t new_base = 0;
    bool saved_flags = false;
    std::array<std::uint8_t, 4> flags{};  ///< as IRET saves them
  };
  std::optional<TaskSwitch> task_;
};

}  // namespace citcat::monitor
