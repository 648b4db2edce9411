#pragma once
// The option that says at which moment a session of the debugger begins.

#include <string>

#include "cli/command.h"

namespace citcat {

/// Defines --at, whose text Monitor::seek() takes; `at` has its default.
inline void define_moment(const CommandParser& parser, std::string& at) {
  parser
      .add_option("--at", at,
                  "Where to begin: a position N or N+K (P:N of processor P), begin, end, or "
                  "divergence (where the replay first differs from the bus)")
      .show_default();
}

}  // namespace citcat
