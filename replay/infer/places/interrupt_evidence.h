#pragma once
// The evidence of the bus around an interrupt without a count: the bytes stored after its
// acknowledge, which include the frame, and the reads before it.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "events/recording.h"

namespace citcat {

/// The surroundings of one interrupt of a recording.
class InterruptEvidence {
 public:
  /// Stores looked at after an acknowledge, in bytes: the largest frame is 40 (out of virtual-8086
  /// mode, Intel SDM vol. 3, figure 21-5), and a handler that saves all registers adds 64.
  static constexpr std::size_t kStoredBytes = 256;
  /// Reads kept before it, in bytes; of more nothing is said.
  static constexpr std::size_t kReadBytes = 1u << 16;

  /// A store after the acknowledge holds `value` in `size` bytes, 2, 4 or 8.
  bool stores(std::uint64_t value, unsigned size) const;
  /// The byte stored first at an address after the acknowledge.
  std::optional<std::uint8_t> stored(PhysAddr address) const;
  std::size_t stored_bytes() const { return order_.size(); }
  bool is_full() const { return order_.size() >= kStoredBytes; }
  /// The addresses of the bytes stored, as the bus showed them.
  const std::vector<std::uint64_t>& stored_order() const { return order_; }

  /// Addresses of the bytes of data read since the last store, port access or interrupt before it,
  /// in bus order; nullopt where the capture does not show every read, or where they are too many.
  const std::optional<std::vector<std::uint64_t>>& reads() const { return reads_; }

 private:
  friend class InterruptScan;
  std::vector<std::uint64_t> order_;  ///< addresses of the bytes stored, as the bus showed them
  std::unordered_map<std::uint64_t, std::uint8_t> bytes_;
  std::optional<std::vector<std::uint64_t>> reads_;
};

/// The surroundings of every interrupt of `schedule`, in its order; nothing of those that a marker
/// shows, which were somewhere before it. `evidence` is read to its end; `shows_reads`: it has
/// every read.
std::vector<InterruptEvidence> scan_interrupts(const Schedule& schedule, bool shows_reads,
                                               EvidenceReader& evidence);
/// The same of a single one: its stores begin at `transaction`. `evidence` is read as far as
/// needed.
InterruptEvidence scan_interrupt(std::uint64_t transaction, bool shows_reads,
                                 EvidenceReader& evidence);

}  // namespace citcat
