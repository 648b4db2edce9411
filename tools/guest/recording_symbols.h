#pragma once

#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/names/symbols.h"

namespace citcat::tools {

/// The names that a command knows: of the files given to it with --symbols
/// (events/names/symbol_file.h), and after them those that the recording keeps.
Symbols known_symbols(const RecordingFile& file, const std::vector<std::string>& files);

}  // namespace citcat::tools
