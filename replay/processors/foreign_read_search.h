#pragma once
// Finds the foreign reads of one processor by a replay of all processors in the order of their bus.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/processors/foreign_reads.h"

namespace citcat {

/// Whether the evidence shows in which order the processors of a machine store and read: it was
/// kept in full, every position is known, and it shows when a processor takes a line into its
/// write-back cache, if there is one.
bool shows_order_of_stores(const MachineFile& machine);

class ForeignReadSearch final : public ForeignReads {
 public:
  struct Options {
    /// Reads to keep, the newest ones: a replay from the beginning finds those before them.
    std::size_t most = std::size_t{1} << 19;
    std::function<void()> poll;  ///< called now and then; may throw to end the replay; may be empty
  };
  /// For a machine whose shows_order_of_stores(). `machine` must outlive this.
  ForeignReadSearch(const MachineFile& machine, std::uint8_t reader, Options options);
  ~ForeignReadSearch() override;

  /// Replays all processors up to `to` of the reader, unless a call before has found these.
  Window before(Position to) override;
  /// Processors whose replay ended early: what they would have stored behind that is not known.
  const std::vector<std::size_t>& stopped() const { return stopped_; }

 private:
  class Listener;

  void collect(Position to);

  const MachineFile& machine_;
  std::uint8_t reader_;
  Options options_;
  std::vector<ForeignRead> reads_;  ///< with from_ <= at < to_
  Position from_, to_;
  std::vector<std::size_t> stopped_;
};

}  // namespace citcat
