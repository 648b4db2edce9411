#pragma once
// The transactions of a capture for the importer, which peeks at them, takes them or puts them
// back, one segment after another.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "capture/bus/read_ahead.h"

namespace citcat {

/// The transactions of a reader, taken a block at a time.
class TransactionStream {
 public:
  TransactionStream(CaptureReader& reader, const std::function<void(std::uint64_t)>& progress)
      : source_(reader), progress_(progress) {}

  /// The next transactions of the segment, as many as are at hand, which the caller may change;
  /// none at its end. They come again unless skip() takes them.
  std::span<BusTransaction> peek() { return peek(~std::size_t{0}); }
  /// Not many more than `most`, so that a run can follow.
  std::span<BusTransaction> peek(std::size_t most) {
    if (!put_back_.empty()) return {&put_back_.front(), 1};
    if (block_.empty() && !read_block(most)) return {};
    return block_;
  }
  /// The next transactions as a run, where the capture has runs. They come again, also from peek(),
  /// unless take_run() takes them.
  AccessRun run() {
    return put_back_.empty() && block_.empty() && !at_end_ ? source_.run() : AccessRun{};
  }
  void take_run(const AccessRun& run) {
    source_.take_run(run);
    count(run.size());
  }
  bool has_runs() const { return source_.has_runs(); }
  /// Consumes the first `count` transactions that peek() returned last.
  void skip(std::size_t count) {
    if (put_back_.empty()) {
      block_ = block_.subspan(count);
    } else if (count != 0) {
      put_back_.pop_front();
    }
  }
  /// Puts transactions back: they are the next to be returned.
  void put_back(std::deque<BusTransaction> transactions) { put_back_ = std::move(transactions); }
  bool next(BusTransaction& t);
  /// Goes on to the next segment of the capture, leaving out what is left of this one.
  bool next_segment();

  bool at_end() const { return at_end_ && put_back_.empty(); }  ///< of the segment
  std::uint32_t segment() const { return segment_; }
  std::uint64_t read() const { return read_; }  ///< transactions so far
  /// What the capture says of itself, as far as it was read.
  const CaptureInfo& info() const { return source_.info(); }
  /// That the capture carries for the segment.
  const std::optional<CpuState>& initial_state() const { return source_.initial_state(); }

 private:
  bool read_block(std::size_t most);
  void count(std::size_t transactions);

  ReadAhead source_;
  const std::function<void(std::uint64_t)>& progress_;
  std::span<BusTransaction> block_;  ///< read but not yet looked at
  std::deque<BusTransaction> put_back_;
  bool at_end_ = false;
  std::uint32_t segment_ = 0;
  std::uint64_t read_ = 0;
};

}  // namespace citcat
