#pragma once
// Captures of a virtual bus monitor: bus records without a header, as binary or as CSV.

#include <memory>
#include <string>
#include <vector>

#include "capture/source.h"

namespace citcat {

int detect_machine_records(const CaptureProbe& probe);
/// Opens headerless 40-byte records; each path is a segment.
std::unique_ptr<CaptureReader> open_machine_records(const std::vector<std::string>& paths,
                                                    const CaptureOptions& options);

}  // namespace citcat
