#pragma once
// Applies the accesses of a run to the memory model with vectors of 32 and 64 bytes: sixteen are
// prepared at a time, then applied a line of memory at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "events/access_run.h"
#include "events/derive/memory_model.h"

namespace citcat {

/// The counts to which accesses add.
struct AccessTotals {
  std::uint64_t reads = 0, line_fills = 0, writes = 0, write_backs = 0;
  std::uint64_t data_reads = 0;  ///< of reads and line fills
  std::uint64_t written = 0;     ///< bytes, without write-backs
};

class SimdMemory {
 public:
  /// The accesses of a run with columns are what the other members take. Wants has_simd_vectors().
  void prepare(const AccessRun& run);

  /// Puts those from `first` on into the lines that they are of, up to `count` of them and not the
  /// first that shows something new: reads of bytes that are not known or known to be others, an
  /// address that SmmEntryDetector watches, and where `keeps` writes to bytes that are not known.
  /// Bytes become known, whole words were accessed in `epoch`. Returns how many.
  std::size_t put(const AccessRun& run, std::span<MemoryModel::Line* const> lines,
                  std::size_t first, std::size_t count, std::uint32_t epoch, bool keeps) const;

  /// The totals of `count` accesses from `first` on.
  AccessTotals totals(const AccessRun& run, std::size_t first, std::size_t count) const;

 private:
  static constexpr std::size_t kMax = AccessRun::kMax;

  std::size_t before_watched(std::size_t first, std::size_t end) const;

  // For each access, a bit for each byte of its line that it covers, and the same for reads alone.
  alignas(64) std::array<std::uint32_t, kMax> cover_{}, read_{};
  alignas(64) std::array<std::uint8_t, kMax> reads_{};  ///< FFh where it reads
  std::array<std::uint16_t, kMax / 16> watched_{};      ///< a bit for each
  AccessTotals totals_;                                 ///< of all
};

}  // namespace citcat
