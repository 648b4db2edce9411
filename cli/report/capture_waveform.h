#pragma once
// The levels of a capture's channels around one of its transactions, for pictures.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/bus/source.h"

namespace citcat {

/// {"transaction","begin","end","first","sample_rate_hz","channels":[{"name","levels"}]}: `levels`
/// is a string of 0 and 1, a character for each sample from `first` on; `begin` and `end` are the
/// samples of the transaction's bus cycle. Null where the capture has no pin levels, or no such
/// transaction.
nlohmann::ordered_json capture_waveform(const std::string& path, const CaptureOptions& options,
                                        std::uint64_t transaction);

}  // namespace citcat
