#pragma once
// Reads a capture on a second thread while the first derives a recording: decompressing, checking
// and decoding take about as long as everything that is then done with the transactions.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capture/bus/source.h"
#include "formats/memory/blocks_ahead.h"

namespace citcat {

/// The transactions of a capture, a block at a time. The first blocks of each segment are read on
/// the calling thread, so that short segments need no second thread.
class ReadAhead {
 public:
  /// `reader` is not owned; nobody else may use it while this object lives.
  explicit ReadAhead(CaptureReader& reader);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next transactions of the segment, which the caller may change, until the next call; none
  /// at its end. Throws what the reader throws, after the transactions before it.
  /// At most `most` of them, where this thread reads.
  std::span<BusTransaction> next(std::size_t most = ~std::size_t{0});
  /// CaptureReader::run() and take_run(), where the reader has runs. next() goes on after them.
  AccessRun run() { return has_runs() ? reader_.run() : AccessRun{}; }
  void take_run(const AccessRun& run) { reader_.take_run(run); }
  bool has_runs() const { return !thread_ && !at_end_ && reader_.has_runs(); }
  /// Goes on to the following segment, once next() gave nothing. False when there is none.
  bool next_segment();

  /// What the reader knew when it had read what next() returned last.
  const CaptureInfo& info() const { return thread_ ? block_->info : reader_.info(); }
  /// CaptureReader::initial_state() of the segment.
  const std::optional<CpuState>& initial_state() const { return state_; }

 private:
  /// What one thread hands to the other.
  struct Block {
    std::vector<BusTransaction> transactions;
    std::size_t size = 0;  ///< of `transactions`, which is longer
    CaptureInfo info;
    bool last = false;         ///< of the segment
    std::exception_ptr error;  ///< what came after them, if they are the last
  };

  std::span<BusTransaction> read_here(std::size_t most);
  std::span<BusTransaction> take_block();
  static void fill(CaptureReader& reader, Block& block);

  CaptureReader& reader_;
  std::optional<CpuState> state_;
  std::uint64_t read_here_ = 0;  ///< transactions of this segment
  bool at_end_ = false;
  std::shared_ptr<Block> block_;  ///< handed out last
  std::unique_ptr<BlocksAhead<Block>> thread_;
};

}  // namespace citcat
