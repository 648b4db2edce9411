#pragma once
// The contents of an archive beside its recording: who wrote it, and digests of a verified replay.

#include <cstdint>
#include <string>

namespace citcat {

/// The form in which the archive keeps the evidence.
enum class EvidenceMode : std::uint8_t {
  full = 0,     ///< every transaction, as EvidenceReader gives them
  digests = 1,  ///< at intervals, digests of everything that a replay must reproduce
};

/// Facts about the archive itself.
struct ArchiveMeta {
  std::string engine;  ///< who wrote it: program and versions
  EvidenceMode evidence = EvidenceMode::full;
  /// Events carry only what a replay needs. Port reads have no transaction; events with a position
  /// have no anchors and windows; port reads and internal reads, which are consumed in order, have
  /// no positions and no EIP.
  bool lean = false;
  /// In a recording without instruction counts: the number of values that cross no bus.
  std::uint64_t uncounted_values = 0;
};

/// A hash of everything that a replay did up to a position. By these, an archive without evidence
/// shows whether a later replay equals the verified one. replay/session/digest_sink.h says what the
/// hash covers.
struct ReplayDigest {
  std::uint64_t instruction = 0;  ///< completed instructions
  std::uint64_t digest = 0;       ///< of everything since the start
  bool operator==(const ReplayDigest&) const = default;
};

}  // namespace citcat
