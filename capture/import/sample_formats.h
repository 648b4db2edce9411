#pragma once
// Files of pin levels: how each is recognised and opened.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/source.h"
#include "formats/captures/samples.h"

namespace citcat {

/// Their rows of capture_formats(); `open` is nullptr, as open_capture_with_cycles() opens them.
std::span<const CaptureFormat> sample_formats();

/// The samples themselves, for what looks at pins rather than transactions; nullptr when `format`
/// is no format of pin levels. Several paths are channels where the format has one file a channel,
/// else only the first is opened.
std::unique_ptr<SampleSource> open_samples(std::string_view format,
                                           const std::vector<std::string>& paths);

/// The name by which the functions here know the format with this identifier. For `columns` it
/// includes the file of its description, as the user wrote it ("columns:FILE").
std::string format_in_full(std::string_view id, const CaptureOptions& options);

/// The name without folders, size and hash of a file as stored.
Provenance::File describe_file(const std::string& path);

/// open_capture() for such a format, with every bus cycle shown to `on_cycle` as well.
std::unique_ptr<CaptureReader> open_capture_with_cycles(
    std::string_view format, const std::vector<std::string>& paths, const CaptureOptions& options,
    std::function<void(const PinCycle&)> on_cycle);

}  // namespace citcat
