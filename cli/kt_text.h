#pragma once

#include <cstdint>
#include <string>

#include "formats/kt.h"
#include "replay/disassembler.h"

namespace citcat {

/// How records are printed.
enum class TextForm : std::uint8_t { text, json, csv };
/// The form of that name. Throws UsageError.
TextForm parse_form(const std::string& name);

/// What stands before all records, with its line end; may be empty.
std::string kt_text_head(TextForm form);
/// One record of KT as a line with its end. `number` is that of the instruction, or of the one a
/// process or translation record precedes.
std::string kt_record_text(const KtRecord& record, std::uint64_t number, TextForm form,
                           Disassembler& disassembler);

}  // namespace citcat
