#pragma once
// Follows the system calls of programs under Linux on i386, from a replay's events alone, without
// any change to the machine.
//
// A call begins where a program at level 3 executes INT 80h or SYSENTER. It ends where the
// processor comes back to level 3 in the same address space with the same stack pointer, after the
// call. What happens in between - other processes, interrupts, faults, handlers of signals - does
// not matter. Three kinds of ends are different: the child of a fork begins in an address space of
// its own, after the same call, with 0 in EAX; a program that execve() began starts with zeros in
// all general registers but ESP (Linux, arch/x86/include/asm/elf.h, ELF_PLAT_INIT), and with the
// path that it was called by on its stack (AT_EXECFN of getauxval(3)); and after a signal the call
// may be made again, by going back to it. Sources: Linux, arch/x86/entry/entry_32.S and
// entry/vdso/vdso32/system_call.S.

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address_space.h"
#include "replay/machine/observer.h"
#include "tools/guest/guest.h"
#include "tools/guest/system_call.h"

namespace citcat::tools {

/// Is notified of what the follower finds.
class SystemCallListener {
 public:
  virtual ~SystemCallListener() = default;
  virtual void began(const SystemCall&) {}
  /// But for what is pending when the run ends.
  virtual void ended(const SystemCall&) {}
  /// A new process runs for the first time, in an address space of its own.
  virtual void forked(AddressSpaceId /*parent*/, AddressSpaceId /*child*/, Position) {}
  /// A program begins in an address space; `path` as it was given to execve(), empty where that is
  /// not known.
  virtual void executed(AddressSpaceId /*address_space*/, const std::string& /*path*/, Position) {}
  /// A process gave itself a name, by prctl(2).
  virtual void renamed(AddressSpaceId /*address_space*/, const std::string& /*name*/, Position) {}
};

class SystemCallFollower {
 public:
  /// Must outlive the follower.
  explicit SystemCallFollower(SystemCallListener& listener) : listener_(listener) {}

  /// The guest whose events are going to be reported; outlives them.
  void watch(const Guest& guest) { guest_ = &guest; }
  /// The guest is before the delivery.
  void delivered(const DeliveredEvent& event, Position now);
  /// SYSENTER, or `wide` SYSCALL: the registers are those of the program.
  void fast_call(Position now, bool wide = false);
  /// SYSEXIT, or `wide` SYSRET: the registers are those of the kernel.
  void fast_returned(Position now, bool wide = false);
  /// IRET has completed.
  void returned(Position now);
  /// Calls that have begun and not ended, in the order of their beginnings.
  std::vector<SystemCall> pending() const;
  /// A process waits in vfork() for its child, which runs in the same address space.
  bool lends_memory(AddressSpaceId address_space) const;

 private:
  /// Where a program left level 3, or comes back to it.
  struct Place {
    AddressSpaceId address_space = 0;
    std::uint64_t esp = 0, eip = 0;
    bool operator==(const Place&) const = default;
  };
  struct Pending {
    SystemCall call;
    Place place;  ///< with the EIP after INT 80h or SYSCALL; of SYSENTER itself where `fast`
    bool fast = false;
  };
  /// A call that makes a process whose child has not run yet.
  struct Fork {
    Place place;
    bool fast = false;
    std::uint64_t child_stack = 0;  ///< 0: the parent's
  };

  Place here() const;
  enum class Way : std::uint8_t { interrupt, sysenter, syscall };
  void begin(Way way, Position now);
  static void read_arguments(SystemCall& call, const Guest& guest);
  void come_back(const Place& place, Position now);
  bool is_behind(const Place& place, const Place& call, bool fast) const;
  bool goes_back_to_call(const Place& place, const Pending& pending) const;
  void finish(std::list<Pending>::iterator pending, SystemCall::End how, Position now);
  bool begin_child(const Place& place, Position now);
  bool begin_program(const Place& place, Position now);
  std::list<Pending>::iterator caller_of(const Place& place, const std::string& path);
  std::optional<std::string> executed_path(std::uint64_t esp) const;
  void forget(AddressSpaceId address_space, Position now);

  SystemCallListener& listener_;
  const Guest* guest_ = nullptr;
  std::uint64_t begun_ = 0;
  std::list<Pending> pending_;  ///< the newest last
  std::vector<Fork> forks_;     ///< the newest last
  /// Where programs were interrupted or faulted and have not gone on.
  std::vector<Place> interrupted_;
};

}  // namespace citcat::tools
