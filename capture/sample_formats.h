#pragma once
// Rows of the table of formats for files of pin levels.

#include <memory>
#include <string>
#include <vector>

#include "capture/source.h"

namespace citcat {

int detect_sigrok(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_sigrok_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);

int detect_vcd(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_vcd_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);

int detect_csv(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_csv_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);

int detect_ols(const CaptureProbe& probe);
std::unique_ptr<CaptureReader> open_ols_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);

}  // namespace citcat
