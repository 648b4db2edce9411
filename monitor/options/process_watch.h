#pragma once
// Programs of Linux on i386 and amd64 as they begin and end, seen from the processor alone. A
// program that execve() began starts at level 3 with zeros in all general registers but the stack
// pointer (Linux, arch/x86/include/asm/elf.h, ELF_PLAT_INIT and elf_common_init()), and has the
// path that it was called by on its stack (AT_EXECFN of getauxval(3)). It may give itself another
// name by prctl(2), as busybox does. It ends by exit_group(2) or, without threads, exit(2). No
// symbols and no layout of a kernel's structures are needed for it.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "monitor/options/trigger.h"
#include "monitor/state/registers.h"

namespace citcat::monitor {

/// Watches for the beginning or end of a program, as a trigger names it.
class ProcessWatch {
 public:
  /// Reads memory by its linear address, in the current address space; false where none is mapped.
  using ReadMemory = std::function<bool(std::uint64_t linear, std::span<std::uint8_t> bytes)>;

  ProcessWatch(const Trigger& trigger, Registers& registers, ReadMemory read)
      : trigger_(trigger), registers_(registers), read_(std::move(read)) {}

  /// Whether the trigger is one of these.
  bool wanted() const {
    return trigger_.kind == Trigger::Kind::process || trigger_.kind == Trigger::Kind::exit;
  }
  /// A block of such code begins at level 3. True when it completes the trigger.
  bool block(CodeSize code);
  /// An instruction that calls the system is about to be executed at level 3. True when it
  /// completes the trigger.
  bool call(CodeSize code);

 private:
  bool starts_program(CodeSize code) const;
  std::optional<std::string> path_of_program(unsigned word) const;
  std::string text(std::uint64_t linear, std::size_t longest) const;
  bool note_name(const std::string& path);
  std::optional<std::uint64_t> word_at(std::uint64_t linear, unsigned bytes) const;
  bool is_named(const std::string& path) const;

  const Trigger trigger_;
  Registers& registers_;
  const ReadMemory read_;
  std::set<std::uint64_t> running_;  ///< CR3 of those that have begun and have the name
};

}  // namespace citcat::monitor
