#pragma once

#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/names/symbols.h"

namespace citcat::tools {

/// The names that a command knows: those in the files given with --symbols
/// (events/names/symbol_file.h), and then those that the recording keeps.
Symbols known_symbols(const RecordingFile& file, const std::vector<std::string>& files);

}  // namespace citcat::tools
