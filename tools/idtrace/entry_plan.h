#pragma once
// Which entries an instruction has in IDtrace's files, and which addresses of its KT record they
// hold: one rule for the writer and the reader.

#include <array>
#include <cstdint>

#include "formats/idtrace/block_file.h"
#include "formats/idtrace/trace_entry.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat::tools {

/// Entries of one execution, or of one iteration of a REP, in the order of the file: a target comes
/// first, then what is read before what is written, strings source first (docs/formats/idtrace.md).
struct IdtraceEntryPlan {
  struct Entry {
    IdtraceTag tag = IdtraceTag::read;
    std::uint8_t size_code = 0;     ///< of a reference
    std::uint8_t slot = 0;          ///< address of the KT record that it holds
    std::uint8_t pointer_code = 0;  ///< size code of the pointer that a target is read from, else 0
  };
  std::uint8_t count = 0;
  std::array<Entry, 2> entries{};
};
IdtraceEntryPlan idtrace_entry_plan(const DecodedInstruction& info);

/// The entry of `.blk` for it.
IdtraceInstruction idtrace_instruction(const DecodedInstruction& info);

/// The control instruction's entry in a branch trace; `last_byte` is the address of its last byte.
IdtraceEntry idtrace_control(const DecodedInstruction& info, std::uint32_t last_byte);

}  // namespace citcat::tools
