#pragma once
// What an archive says beside its recording: who wrote it, and what a verified replay came to.

#include <cstdint>
#include <string>

namespace citcat {

/// What the archive keeps of the evidence.
enum class EvidenceMode : std::uint8_t {
  full = 0,     ///< every transaction, as EvidenceReader gives them
  digests = 1,  ///< digests of what a replay must reproduce, at intervals
};

/// What an archive says of itself beside the recording.
struct ArchiveMeta {
  std::string engine;  ///< who wrote it: program and versions
  EvidenceMode evidence = EvidenceMode::full;
  /// Events carry only what a replay needs: no transactions of port reads; no anchors and windows
  /// where positions are known; I/O and internal reads, which are consumed in order, no positions
  /// and no EIP.
  bool lean = false;
  /// In a recording without instruction counts: how many values cross no bus.
  std::uint64_t uncounted_values = 0;
};

/// A hash of what a replay did up to a position. An archive without evidence keeps these to tell
/// whether a later replay is the one that was verified. replay/session/digest_sink.h says what the
/// hash covers.
struct ReplayDigest {
  std::uint64_t instruction = 0;  ///< completed instructions
  std::uint64_t digest = 0;       ///< of everything since the start
  bool operator==(const ReplayDigest&) const = default;
};

}  // namespace citcat
