#pragma once
// import_capture() for a capture that is already open, possibly after a reader that completes its
// transactions.

#include <string>

#include "capture/bus/source.h"
#include "capture/import/import.h"

namespace citcat {

/// Derives a recording from an open capture to an archive; `files` is how many were opened, `name`
/// that of the first. Nothing is left of the archive when something throws.
ImportResult import_reader(CaptureReader& reader, const std::string& name, std::size_t files,
                           const ImportOptions& options, const std::string& out_path);

}  // namespace citcat
