#pragma once
// Address traces as captures: what was accessed and when, but not what was there. They can be
// counted, listed and converted; a replay needs data.

#include <memory>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "formats/captures/byu.h"

namespace citcat {

int detect_byu(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_byu_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
int detect_byu_pentium(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_byu_pentium_capture(const std::vector<std::string>& paths,
                                                        const CaptureOptions& options);

/// The record for a transaction; false for one the format has no request type for (instruction
/// starts, NMI). `time` is left to the caller.
bool byu_record_of(const BusTransaction& transaction, ByuRecord& out);

}  // namespace citcat
