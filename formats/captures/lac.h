#pragma once
// Captures of the LogicAnalyzer program for the Raspberry Pi Pico (.lac): JSON with settings and
// samples. See docs/formats/lac.md.

#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Reads a capture, of at most kMostLacBytes, as a whole. FormatError if it is not such a file.
std::unique_ptr<SampleSource> open_lac(std::unique_ptr<InputStream> input);
inline constexpr std::size_t kMostLacBytes = std::size_t{256} << 20;

/// Whether these are the first bytes of such a file.
bool is_lac(std::span<const std::uint8_t> prefix);

}  // namespace citcat
