#pragma once
// import_capture() of a capture that somebody has opened, and may have put something in front of.

#include <string>

#include "capture/bus/source.h"
#include "capture/import/import.h"

namespace citcat {

/// Derives a recording from an open capture to an archive; `files` is how many were opened, `name`
/// that of the first. Nothing is left of the archive when something throws.
ImportResult import_reader(CaptureReader& reader, const std::string& name, std::size_t files,
                           const ImportOptions& options, const std::string& out_path);

}  // namespace citcat
