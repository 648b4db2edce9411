#pragma once
// The samples of the tree that tests of several commands use.

namespace citcat::testing {

/// The pins of the 8088 of an IBM PC (samples/ibm5150).
inline constexpr const char* kArea5150 = CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr";
/// The start of Linux as a monitor wrote it, and the values that cross no bus (samples/linux).
inline constexpr const char* kLinuxStart = CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst";
inline constexpr const char* kLinuxStartValues = CITCAT_SOURCE_DIR "/samples/linux/start.side.csv";

}  // namespace citcat::testing
