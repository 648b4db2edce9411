#pragma once
// Captures of pin levels: a source of samples, the channel map and the decoder of the bus.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/bus_decoder.h"
#include "capture/channel_map.h"
#include "capture/source.h"
#include "formats/samples.h"

namespace citcat {

using SampleOpener = std::function<std::unique_ptr<SampleSource>(const std::string& path)>;

/// Opens samples as a capture; several paths are segments. Throws what open_capture() throws.
/// `on_cycle`, when given, sees every bus cycle before it becomes a transaction.
std::unique_ptr<CaptureReader> open_sample_capture(
    std::string format, const std::vector<std::string>& paths, const CaptureOptions& options,
    SampleOpener open, std::function<void(const PinCycle&)> on_cycle = nullptr);

}  // namespace citcat
