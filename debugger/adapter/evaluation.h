#pragma once
// Expressions that somebody types: numbers, registers, names, memory, and sums of these.

#include <cstdint>
#include <optional>
#include <string>

#include "debugger/adapter/debuggee.h"

namespace citcat::dap {

/// A value, and where it may lead to.
struct Evaluated {
  std::uint64_t value = 0;
  unsigned bytes = 8;
  std::string symbol;  ///< of what lies there, where it has a name
  /// Where the value itself lies, of an expression that is nothing but memory.
  std::optional<LinearAddr> place = {};
};

/// sum := part (("+" | "-") part)*; part := number | "$"? register | name | "*" part |
/// "[" sum "]" (":" bytes)? | "(" sum ")". Throws UsageError for anything else, a register or
/// memory whose value is not known, and an expression longer or deeper than anybody types.
Evaluated evaluate(const Debuggee& debuggee, const std::string& expression);

}  // namespace citcat::dap
