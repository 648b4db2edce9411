#pragma once
// Captures as Logic 2 saves them (.sal): a ZIP file with meta.json and a file for each channel. The
// form is not published as a whole and changes from one release to another; docs/formats/saleae.md
// says what is known about it and from where.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"

namespace citcat {

/// The digital channels, by the names that somebody gave them in Logic 2. Sample numbers count from
/// the first sample that is kept. FormatError with the member and its offset for a version whose
/// form is not known, and for data that contradict themselves; the message says how to export the
/// capture instead.
std::unique_ptr<SampleSource> open_logic2(const std::string& path);
/// The same from a file in memory, which must outlive the source; `name` is for messages.
std::unique_ptr<SampleSource> open_logic2(std::string name, std::span<const std::uint8_t> bytes);

}  // namespace citcat
