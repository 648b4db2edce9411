#pragma once
// Instructions before and after an address.

#include <cstddef>
#include <string>
#include <vector>

#include "debugger/adapter/debuggee.h"

namespace citcat::dap {

struct DisassembledLine {
  LinearAddr at;
  std::vector<std::uint8_t> bytes;
  std::string text;    ///< "(unknown)" where memory is not known, "(bad)" for no instruction
  bool valid = false;  ///< it is an instruction
};

/// `count` lines from the one that lies `offset` instructions after `at` on, before it where that
/// is negative. Backwards, the decoding is taken that leads up to `at` from as far back as
/// possible: it is not certain where instructions before `at` begin.
std::vector<DisassembledLine> disassemble(const Debuggee& debuggee, LinearAddr at,
                                          std::int64_t offset, std::size_t count);

}  // namespace citcat::dap
