#pragma once
// The native capture format, docs/formats/capture.md: a header that says what the monitor knows,
// bus records, and an end that shows damage. capture/writer/ writes it from C.

#include <memory>
#include <string>
#include <vector>

#include "capture/record_capture.h"
#include "capture/source.h"

namespace citcat {

/// One file of such records.
std::unique_ptr<RecordFile> make_native_record_file(std::unique_ptr<InputStream> input);

int detect_native(const CaptureProbe& probe);
/// Each path is a segment.
std::unique_ptr<CaptureReader> open_native_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);

}  // namespace citcat
