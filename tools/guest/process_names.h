#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "events/machine/address_space.h"
#include "tools/guest/system_call_follower.h"

namespace citcat::tools {

/// The names of processes: the file name of the program that execve() began in them ("sh" of
/// "/bin/sh"), which a child inherits from its parent until it executes another, or the name that
/// they gave themselves last (prctl(2), PR_SET_NAME). It is notified of system calls
/// (system_call_follower.h); a process that began its program before the recording has no name.
///
/// A process is an address space, identified by CR3. Kernel threads run in the address space of the
/// process before them, and so have its name.
class ProcessNames final : public SystemCallListener {
 public:
  /// The name of the process with these page tables.
  std::optional<std::string> name(AddressSpaceId address_space) const;

  /// From here on two tables, a page from each other, are one process's (Context::
  /// has_isolated_tables()).
  void join_tables();
  AddressSpaceId space_of(AddressSpaceId cr3) const {
    return isolated_ ? cr3 & ~AddressSpaceId{kPageSize} : cr3;
  }
  /// CR3 was loaded.
  void address_space(AddressSpaceId cr3);
  void began(const SystemCall& call) override;
  void forked(AddressSpaceId parent, AddressSpaceId child, Position now) override;
  void executed(AddressSpaceId address_space, const std::string& path, Position now) override;
  void renamed(AddressSpaceId address_space, const std::string& name, Position now) override;
  /// Whose waiting parents keep an address space alive that exit_group() is called in.
  void set_follower(const SystemCallFollower& follower) { follower_ = &follower; }

 private:
  struct Process {
    std::string name;
    /// exit_group() was called: once the processor has left its page tables, they may be another's.
    bool ends = false, left = false;
  };
  std::unordered_map<AddressSpaceId, Process> processes_;
  const SystemCallFollower* follower_ = nullptr;
  AddressSpaceId current_ = 0;
  bool isolated_ = false;
};

}  // namespace citcat::tools
