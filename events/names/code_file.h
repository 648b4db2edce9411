#pragma once
// Files whose code a recorded machine has executed.

#include <string>
#include <vector>

#include "events/machine/known_code.h"

namespace citcat {

/// Reads the code of an ELF file (its loaded segments), or all of any other file, such as a ROM's
/// image. "FILE@BASE" says where its first page lay, as for symbols (symbol_file.h); any other
/// file than ELF needs it. Perhaps compressed (formats/io/input.h).
///
/// Throws FormatError for a broken ELF file or one of another processor, IoError, and UsageError
/// for a base that is missing, or makes no sense.
std::vector<KnownCode> load_code_file(const std::string& name);
/// The code of several files.
std::vector<KnownCode> load_code_files(const std::vector<std::string>& names);

}  // namespace citcat
