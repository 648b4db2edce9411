#pragma once

#include <cstdint>
#include <string_view>

namespace citcat::tools {

/// What Linux on i386 calls a system call, and of what its arguments are: a letter each.
///
/// | letter | |
/// |---|---|
/// | d, u, x, o | a number: signed, unsigned, hexadecimal, octal |
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
const SystemCallRow* find_system_call(std::uint32_t number);

/// Those that mean something to who follows processes.
enum SystemCallNumber : std::uint32_t {
  kExit = 1,
  kFork = 2,
  kExecve = 11,
  kSigreturn = 119,
  kClone = 120,
  kPrctl = 172,
  kRtSigreturn = 173,
  kVfork = 190,
  kExitGroup = 252,
  kExecveat = 358,
  kClone3 = 435,
};

/// The first argument of prctl() that gives the caller a name, its second (PR_SET_NAME of
/// prctl(2)).
inline constexpr std::uint32_t kSetName = 15;

/// Most arguments of any.
inline constexpr unsigned kSystemCallArguments = 6;
/// The interrupt by which programs on i386 call Linux.
inline constexpr std::uint8_t kSystemCallVector = 0x80;

}  // namespace citcat::tools
