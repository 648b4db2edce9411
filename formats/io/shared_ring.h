#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Bytes on their way from a process to the one that forked it, through memory that both see: one
/// writer, one reader. Made before the fork.
///
/// Who has to wait looks again every half millisecond: the ring holds what either of them makes in
/// tens of that.
class SharedRing {
 public:
  /// `bytes` is rounded up to whole pages. Memory is taken as it is filled. Throws IoError.
  explicit SharedRing(std::size_t bytes);
  ~SharedRing();
  SharedRing(const SharedRing&) = delete;
  SharedRing& operator=(const SharedRing&) = delete;

  std::size_t size() const { return size_; }

  /// The writer's side. Waits while there is no room; false once the reader's process has gone.
  bool write(std::span<const std::uint8_t> bytes);

  /// Where everything written has been read, and the writer is at least `bytes` beyond the
  /// beginning of the ring: how many bytes it may skip() to be there again, where memory is still
  /// in the caches. Else 0.
  std::size_t skippable(std::size_t bytes) const;
  /// Leaves out as many bytes, which the reader has to consume() like others.
  void skip(std::size_t bytes);

  /// The reader's side: what can be read now, all of it in one piece; empty when there is nothing.
  std::span<const std::uint8_t> readable() const;
  /// The first `bytes` of readable() have been read.
  void consume(std::size_t bytes);

  /// What a side that has nothing to do does before it looks again: sleeps half a millisecond.
  static void wait();

 private:
  /// How much was written and read since the beginning, each on a cache line of its own.
  struct Counts {
    alignas(64) std::atomic<std::uint64_t> written;
    alignas(64) std::atomic<std::uint64_t> read;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::size_t size_;
  std::uint8_t* bytes_ = nullptr;  ///< mapped twice, one after the other
  Counts* counts_ = nullptr;
  int reader_;  ///< process
};

}  // namespace citcat
