#pragma once

#include <cstdint>
#include <string_view>

namespace citcat::tools {

/// The interface whose numbers a call has.
enum class SystemCallInterface : std::uint8_t {
  i386,   ///< INT 80h and SYSENTER
  amd64,  ///< SYSCALL in 64-bit mode
};

/// What Linux calls a system call, and of what its arguments are: a letter each.
///
/// | letter | |
/// |---|---|
/// | d, u, x, o | a number: signed and of 32 bits, unsigned, hexadecimal, octal |
/// | l | a signed number of the whole width |
/// | p | an address |
/// | s | the address of a text that ends with a zero: a path, a name |
/// | v | the address of a list of such addresses that ends with a zero one |
/// | w | the address of what is written: as many bytes as the next argument says |
/// | r | the address of room for what is read: as many bytes as the result says |
struct SystemCallRow {
  std::uint32_t number = 0;
  std::string_view name;
  std::string_view arguments;  ///< "?" where nobody implements it any more
};

/// Null for a number that has no name here.
const SystemCallRow* find_system_call(std::uint32_t number,
                                      SystemCallInterface of = SystemCallInterface::i386);

/// The system calls that matter for following processes.
enum class SystemCallMeaning : std::uint8_t {
  other,
  exit,
  fork,
  execve,
  sigreturn,
  clone,
  prctl,
  rt_sigreturn,
  vfork,
  exit_group,
  execveat,
  clone3,
};
SystemCallMeaning system_call_meaning(std::uint32_t number, SystemCallInterface of);

/// The first argument of prctl() that gives the caller a name, its second (PR_SET_NAME of
/// prctl(2)).
inline constexpr std::uint32_t kSetName = 15;

/// Most arguments of any.
inline constexpr unsigned kSystemCallArguments = 6;
/// The interrupt by which programs on i386 call Linux.
inline constexpr std::uint8_t kSystemCallVector = 0x80;

}  // namespace citcat::tools
