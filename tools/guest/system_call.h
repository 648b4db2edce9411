#pragma once
// A call of the operating system, as a person reads it: Linux on i386 by INT 80h and SYSENTER,
// on amd64 by SYSCALL.

#include <array>
#include <cstdint>
#include <string>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
#include "events/position.h"
#include "tools/guest/system_call_table.h"

namespace citcat::tools {

class Guest;

struct SystemCall {
  enum class End : std::uint8_t {
    pending,    ///< it has not ended yet
    returned,   ///< with `result`
    restarted,  ///< a signal came; it is going to be called again
    never,      ///< it does not return, or the process ended within it
  };
  std::uint64_t ordinal = 0;  ///< calls that began before it
  std::uint32_t number = 0;   ///< which one it is
  SystemCallInterface of = SystemCallInterface::i386;
  std::array<std::uint64_t, kSystemCallArguments> arguments{};
  /// So many of them; the sixth of SYSENTER lies on a stack that no evidence may tell.
  unsigned known_arguments = kSystemCallArguments;
  /// For each argument that is the address of a text: the text as found, quoted; empty where it was
  /// not in memory.
  std::array<std::string, kSystemCallArguments> texts;
  AddressSpaceId address_space = 0;  ///< CR3 at its beginning
  Position begin, end;               ///< where the processor left the program, and came back
  End state = End::pending;
  std::uint64_t result = 0;
};

inline SystemCallMeaning meaning_of(const SystemCall& call) {
  return system_call_meaning(call.number, call.of);
}
/// The result as the number that it is: of 32 bits, on amd64 of 64.
inline std::int64_t signed_result(const SystemCall& call) {
  return call.of == SystemCallInterface::amd64 ? static_cast<std::int64_t>(call.result)
                                               : static_cast<std::int32_t>(call.result);
}
/// "open"; "system_call_1000" where the number has no name.
std::string system_call_name(std::uint32_t number,
                             SystemCallInterface of = SystemCallInterface::i386);
/// "open(\"/etc/passwd\", 0x8000, 0)": addresses are where the texts are not known. A call
/// without a name has all six arguments, hexadecimal.
std::string system_call_text(const SystemCall& call);
/// "3", "-1 ENOENT", "0x804b000" where an address is returned, "?" where nothing was.
std::string result_text(const SystemCall& call);

bool is_error(const SystemCall& call);
/// Between quotes, what cannot be printed as \xHH; at most `most` bytes of it, and then "..."
/// after.
std::string quoted_text(const std::string& text, std::size_t most = ~std::size_t{0});
/// Reads the texts of the arguments that are not known yet; `ended` also what was read into memory.
/// Texts are cut, with "..." after them, after kShownText bytes, paths after kPathMax.
void read_texts(SystemCall& call, const Guest& guest, bool ended);
/// Some text that the call began with is not known yet: its page may not have been there.
bool wants_texts(const SystemCall& call);

inline constexpr std::size_t kShownText = 32;
/// Longest path that Linux takes, with the zero after it (include/uapi/linux/limits.h).
inline constexpr std::size_t kPathMax = 4096;

}  // namespace citcat::tools
