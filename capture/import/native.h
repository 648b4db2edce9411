#pragma once
// The native capture format, docs/formats/capture.md: a header that says what the monitor knows,
// bus records, and an end that reveals damage. capture/writer/ writes it from C.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/record_capture.h"

namespace citcat {

inline constexpr std::array<std::uint8_t, 8> kNativeMagic{0x93, 'C', 'I', 'T', 'C', 'A', 'P', '\n'};
// History: 1 is the first, whose header is under no sum; 2 adds one after it.
inline constexpr std::uint16_t kNativeVersion = 2;
/// The version of captures of several processors, whose records say who drove them.
inline constexpr std::uint16_t kNativeProcessorsVersion = 3;
/// Bytes of the header's fields, and of the whole header.
inline constexpr std::uint16_t kNativeFieldBytes = 64, kNativeHeaderBytes = kNativeFieldBytes + 8;
/// FNV-1a of 64 bits (Fowler, Noll, Vo) over the fields: short enough for a monitor's firmware, and
/// another for each that differ in one byte.
std::uint64_t native_header_sum(std::span<const std::uint8_t, kNativeFieldBytes> fields);
/// Bits of the header's flags.
inline constexpr std::uint16_t kNativePositions = 1, kNativeClock = 2;
/// For several processors: HIT#, LOCK# and invalidations of lines are shown.
inline constexpr std::uint16_t kNativeSharing = 4;

/// One file of such records.
std::unique_ptr<RecordFile> make_native_record_file(std::unique_ptr<InputStream> input);

int detect_native(const CaptureProbe& probe);
/// Whether it is one of several processors.
bool native_shows_processors(const std::string& path);
/// Each path is a segment.
std::unique_ptr<CaptureReader> open_native_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);

}  // namespace citcat
