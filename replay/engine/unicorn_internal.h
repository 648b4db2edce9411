#pragma once
// Unicorn's functions, found when an engine is first made: binding the library's 22,700 symbols
// takes longer than most commands that make no engine.

#include <unicorn/unicorn.h>
#include <unicorn/x86.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "events/machine/address.h"
#include "replay/engine/library_calls.h"

namespace citcat {

/// Loads the library that the headers are of, once. Wants to be called before any of those below.
/// Throws IoError when it is not there or lacks a function.
void load_unicorn();

/// Throws InternalError unless `error` is none. `doing`: what failed then, as in "map memory".
void check(uc_err error, const char* doing);

/// The functions in use.
#define CITCAT_UNICORN_FUNCTIONS(X) \
  X(uc_close)                       \
  X(uc_context_alloc)               \
  X(uc_context_free)                \
  X(uc_context_save)                \
  X(uc_ctl)                         \
  X(uc_emu_start)                   \
  X(uc_emu_stop)                    \
  X(uc_hook_add)                    \
  X(uc_mem_map)                     \
  X(uc_mem_map_ptr)                 \
  X(uc_mem_write)                   \
  X(uc_open)                        \
  X(uc_reg_read)                    \
  X(uc_reg_write)                   \
  X(uc_strerror)                    \
  X(uc_version)

// Named as the library names them: in this namespace they hide its own declarations, in its macros
// too. Null before load_unicorn().
// NOLINTNEXTLINE(bugprone-macro-parentheses): what is declared takes none
#define CITCAT_DECLARE(name) extern LibraryFunction<decltype(&::name)> name;
CITCAT_UNICORN_FUNCTIONS(CITCAT_DECLARE)
#undef CITCAT_DECLARE

/// An address as the library hands it over, in 64 bits whatever the mode, of a 32-bit processor.
inline LinearAddr linear_of(std::uint64_t reported) {
  return LinearAddr{static_cast<std::uint32_t>(reported)};
}

/// Permissions of the memory that the library may keep its state and the guest's in.
inline constexpr std::string_view kLibraryData = "rw";

}  // namespace citcat
