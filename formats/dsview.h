#pragma once
// DSView captures (.dsl), versions 2 and 3: a ZIP file with a text `header` and, for every channel,
// members `L-<channel>/<block>` of one bit a sample.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/samples.h"

namespace citcat {

/// Opens a capture of logic channels. IoError when it cannot be read, FormatError when it is not
/// such a file, is of version 1 (whose sample order is not documented) or is cut.
std::unique_ptr<SampleSource> open_dsview(const std::string& path);
/// The same from memory; `bytes` must outlive the source.
std::unique_ptr<SampleSource> open_dsview(const std::string& name,
                                          std::span<const std::uint8_t> bytes);

}  // namespace citcat
