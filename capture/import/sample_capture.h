#pragma once
// Captures of pin levels: a source of samples, the channel map and the decoder of the bus.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/channel_map.h"
#include "capture/bus/source.h"
#include "formats/captures/samples.h"

namespace citcat {

/// Opens the files of one segment: one, or those of the channels.
using SampleOpener =
    std::function<std::unique_ptr<SampleSource>(const std::vector<std::string>& paths)>;

/// Opens samples as a capture; `segments` are the files of each segment. Throws what open_capture()
/// throws. `on_cycle`, when given, sees every bus cycle before it becomes a transaction.
std::unique_ptr<CaptureReader> open_sample_capture(
    std::string format, std::vector<std::vector<std::string>> segments,
    const CaptureOptions& options, SampleOpener open,
    std::function<void(const PinCycle&)> on_cycle = nullptr);

}  // namespace citcat
