#pragma once
// Captures of a virtual bus monitor: bus records without a header, as binary or as CSV.

#include <memory>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/record_capture.h"

namespace citcat {

/// One file of such records.
std::unique_ptr<RecordFile> make_machine_record_file(std::unique_ptr<InputStream> input);

int detect_machine_records(const CaptureProbe& probe);
/// Opens headerless 40-byte records; each path is a segment.
std::unique_ptr<CaptureReader> open_machine_records(const std::vector<std::string>& paths,
                                                    const CaptureOptions& options);

}  // namespace citcat
