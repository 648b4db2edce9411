#pragma once
// The state of the machine in which something happens: which process, at which level, within which
// interrupts.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "events/machine/address.h"
#include "events/position.h"
#include "replay/machine/isolated_tables.h"
#include "replay/machine/observer.h"

namespace citcat {
class Machine;
}

namespace citcat::tools {

/// Kept by the host, which tells it what happens; read by scope and tools. A delivery is open until
/// an IRET or RSM goes back to what it interrupted; level 3 is reached only when none is. Each
/// address space has open deliveries of its own, so that a switch of processes within a handler
/// does not lose them. Where the kernel switches between tasks of one address space within a
/// handler, what follows counts as part of it until it returns.
class Context {
 public:
  /// An open exception, interrupt or software interrupt. What readers ask of those it lies within
  /// is kept with it: programs may never return from them, and then there are as many as were ever
  /// delivered.
  struct Open {
    ~Open();
    DeliveredEvent::Kind kind = DeliveredEvent::Kind::exception;
    std::uint8_t vector = 0;
    std::uint32_t level = 0;            ///< that it came from
    LinearAddr stack;                   ///< top of the stack of what was interrupted
    bool system_call = false;           ///< INT 80h, SYSENTER or SYSCALL from level 3
    bool wide_call = false;             ///< by SYSCALL in 64-bit mode, whose numbers are others
    std::uint32_t eax = 0;              ///< at that time
    std::uint32_t depth = 1;            ///< of deliveries that are known
    std::uint32_t interrupts = 0;       ///< how many of all are from outside, NMIs or SMIs
    std::uint8_t interrupt = 0;         ///< vector of the innermost of these
    std::optional<std::uint32_t> call;  ///< EAX of the innermost that is a system call
    bool in_wide_call = false;          ///< `wide_call` of that
    std::shared_ptr<Open> outer;        ///< open when it was delivered; may be null
  };

  /// The machine at the reported moment: after the instruction or block, or at the event.
  const Machine& machine() const { return *machine_; }
  /// CR3, which stands for the process; of isolated tables that of the kernel's.
  AddressSpaceId address_space() const { return address_space_; }
  /// A process has two page tables, as isolated_tables.h says. True once that was seen.
  bool has_isolated_tables() const { return isolated_; }
  /// The address space that `cr3` is one of the tables of.
  AddressSpaceId space_of(AddressSpaceId cr3) const {
    return isolated_ ? without_user_tables(cr3) : cr3;
  }
  /// The same where it is known that tables are isolated.
  static AddressSpaceId without_user_tables(AddressSpaceId cr3) { return cr3 & ~kUserTables; }
  /// The current privilege level, 0 to 3, of what runs.
  std::uint32_t level() const { return level_; }
  /// The same for what happens within an instruction that is not reported yet, and may be the first
  /// one at its level.
  std::uint32_t level_within() const { return level_ == kUnknownLevel ? machine_level() : level_; }
  /// The innermost delivery that has not returned; null at level 3, and where none is known.
  const Open* open() const { return open_.get(); }
  /// The vector of the innermost that is an interrupt from outside, NMI or SMI.
  std::optional<std::uint8_t> interrupt() const;
  /// EAX of the system call in progress: its number.
  std::optional<std::uint32_t> system_call() const;
  /// Open::wide_call of that.
  bool in_wide_call() const;
  /// How many interrupts from outside, NMIs and SMIs are open.
  std::uint32_t interrupt_depth() const;

  static constexpr std::uint32_t kUserLevel = 3;
  /// The vector of system calls of Linux on i386 (arch/x86/include/asm/irq_vectors.h:
  /// IA32_SYSCALL_VECTOR).
  static constexpr std::uint8_t kSystemCallVector = 0x80;

  // For the host.
  /// The machine need not yet be where it will be at the first report.
  void watch(const Machine& machine) { machine_ = &machine; }
  /// refresh() was called.
  bool begun() const { return begun_; }
  /// What is reported next ran at the current level of the machine. True where that is another one
  /// than before.
  bool refresh() {
    const std::uint32_t level = machine_level();
    if (level == level_) [[likely]]
      return false;
    settle(level);
    return true;
  }
  /// What is told was known before: tables are isolated.
  void isolate_tables() { isolated_ = true; }
  /// An instruction that may load CR3 is told, before address_space_loaded() is.
  void may_load(const ExecutedInstruction& e, Position now) {
    load_ = {{LinearAddr{e.linear.value + e.info->length}, e.linear, e.physical}, now};
  }
  void address_space_loaded(AddressSpaceId cr3);
  /// The machine is before the delivery.
  void delivered(const DeliveredEvent& event);
  // Told of instructions that complete just now; the machine may not have gone on yet.
  void fast_call(bool wide);  ///< SYSENTER, or SYSCALL in 64-bit mode
  void fast_returned();       ///< SYSEXIT, SYSRET
  /// IRET, RSM. False if it does not return from a delivery: a handler may push a frame of its own
  /// and end it with IRET. A PC's handler does so to call the previous one, and Linux to make the
  /// processor read its code anew (sync_core()).
  bool returned(const ExecutedInstruction& by);
  /// An instruction that may have changed the level is reported, perhaps while the level is not
  /// known: as the first of all, or the first in a handler. `level` is that at which it began.
  bool settle_before_change(std::uint32_t level) {
    if (level_ != kUnknownLevel) return false;
    settle(level);
    return true;
  }
  /// The level may be another one after what was just reported.
  void level_changes() { level_ = kUnknownLevel; }
  /// Before the last delivery; INT n is reported after it. Swaps the two.
  void swap_with_interrupted() {
    std::swap(level_, interrupted_level_);
    std::swap(open_, interrupted_open_);
  }

 private:
  static constexpr std::uint32_t kUnknownLevel = ~0u;
  /// Deliveries that are kept, at least, of those that lie within each other.
  static constexpr std::uint32_t kDeepest = 1 << 14;

  void open(Open opened);
  void forget_outermost();
  std::uint32_t machine_level() const;
  void settle(std::uint32_t level);
  void entered(std::uint32_t from_level);
  std::optional<LinearAddr> stack_behind(const ExecutedInstruction& iret) const;
  Open* interrupted_with(LinearAddr stack) const;
  bool isolates(AddressSpaceId cr3) const;
  bool was_entered_just_now() const;

  const Machine* machine_ = nullptr;
  Open* returning_ = nullptr;  ///< what the IRET or RSM that was reported last returns from
  AddressSpaceId address_space_ = 0;
  std::uint32_t level_ = kUnknownLevel;
  bool begun_ = false;
  std::shared_ptr<Open> open_;
  std::uint64_t entered_at_ = 0;  ///< the instruction after which the last program was left
  bool entered_ = false;
  bool isolated_ = false;
  /// The last instruction that may have loaded CR3, and where it ran.
  std::pair<TableLoad, Position> load_{{}, {~std::uint64_t{0}, 0}};
  std::uint32_t interrupted_level_ = 0;
  std::shared_ptr<Open> interrupted_open_;
  /// The open contexts of address spaces that are not running.
  std::unordered_map<AddressSpaceId, std::shared_ptr<Open>> open_of_;
};

}  // namespace citcat::tools
