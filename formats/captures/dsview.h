#pragma once
// DSView captures (.dsl): a ZIP file with a text `header`. Versions 2 and 3 have, for every
// channel, members `L-<channel>/<block>` with one bit per sample; version 1 has one member of whole
// samples.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"

namespace citcat {

/// Opens a capture of logic channels. IoError when it cannot be read, FormatError when it is not
/// such a file or is cut.
std::unique_ptr<SampleSource> open_dsview(const std::string& path);
/// The same from memory; `bytes` must outlive the source.
std::unique_ptr<SampleSource> open_dsview(const std::string& name,
                                          std::span<const std::uint8_t> bytes);

}  // namespace citcat
