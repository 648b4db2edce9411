#pragma once
// An index of the evidence about single bytes of memory: who accessed them, and when.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "events/recording.h"

namespace citcat {

/// An access to a byte that the bus showed.
struct ShownAccess {
  std::uint64_t transaction = 0;
  Position position;
  bool write = false;  ///< by the processor, or of a line it gives up
  bool code = false;
  bool snoop = false;  ///< another bus master made the processor write the line back and keep it
};

class EvidenceIndex {
 public:
  /// Reads all of the evidence once. Of each byte the first `kMax` accesses are kept.
  EvidenceIndex(EvidenceReader& evidence, const std::vector<PhysAddr>& bytes);

  const std::vector<ShownAccess>& of(PhysAddr byte) const;
  /// Reads of `byte` from `transaction` on, up to the next write by the processor or `end`.
  std::uint64_t reads_from(PhysAddr byte, std::uint64_t transaction, std::uint64_t end) const;
  /// Reads of it before `transaction` and after the last write by the processor before that, or
  /// after `begin`.
  std::uint64_t reads_before(PhysAddr byte, std::uint64_t transaction, std::uint64_t begin) const;
  /// The last write by the processor before `transaction`.
  std::optional<ShownAccess> last_write(PhysAddr byte, std::uint64_t transaction) const;

 private:
  static constexpr std::size_t kMax = 4096;
  std::unordered_map<std::uint64_t, std::vector<ShownAccess>> accesses_;
};

/// Transactions from `first` on, as many as there are up to `count`.
std::vector<BusTransaction> transactions_from(EvidenceReader& evidence, std::uint64_t first,
                                              std::size_t count);

}  // namespace citcat
