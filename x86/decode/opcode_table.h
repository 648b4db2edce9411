#pragma once
// The table of opcodes (opcodes.def) and the search in it.

#include <cstdint>
#include <optional>
#include <span>

#include "x86/decode/opcode_row.h"

namespace citcat {

/// All rows, in the order of the table. No two are for the same encoding in the same mode: the
/// compiler checks it.
std::span<const OpcodeRow> opcode_rows();

/// What newer processors make of it after F3: the row after it, which there must be.
const OpcodeRow& newer_meaning(const OpcodeRow& row);

struct OpcodeMatch {
  const OpcodeRow* row = nullptr;  ///< null where no row is for the encoding
  bool needs_modrm = false;        ///< `modrm` decides, and was not given
};

/// The row for an opcode. `prefix` is the last of F2 and F3, else 66, else np; `modrm` the byte
/// after the opcode if there is one. The processor is not checked: see OpcodeRow::processors.
/// `bits64`: in 64-bit mode, where some opcodes mean nothing, or something else.
OpcodeMatch find_opcode(OpcodeMap map, std::uint8_t opcode, MandatoryPrefix prefix,
                        std::optional<std::uint8_t> modrm, bool bits64 = false);

}  // namespace citcat
