#pragma once
// sigrok sessions (.sr), versions 1 and 2: a ZIP file with `version`, `metadata` and the samples in
// members `logic-1` or `logic-1-1`, `logic-1-2`, ... See docs/formats/sigrok.md.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"

namespace citcat {

/// Opens a session. IoError when the file cannot be opened; FormatError naming member and offset
/// for anything that is not a session or holds no logic samples.
std::unique_ptr<SampleSource> open_sigrok(const std::string& path);

/// The same from memory; `bytes` must outlive the source.
std::unique_ptr<SampleSource> open_sigrok(const std::string& name,
                                          std::span<const std::uint8_t> bytes);

}  // namespace citcat
