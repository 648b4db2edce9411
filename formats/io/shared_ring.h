#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// A ring buffer in shared memory that carries bytes from a child process to its parent: one
/// writer, one reader. Must be made before the fork.
///
/// A side that has to wait polls every half millisecond; the ring should have room for what the
/// other side produces in tens of such periods.
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

  /// When the ring is empty and the writer is at least `bytes` past its start: how many bytes to
  /// skip() to be at the start again, where memory is still cached. Else 0.
  std::size_t skippable(std::size_t bytes) const;
  /// Skips that many bytes; the reader must consume() them like any others.
  void skip(std::size_t bytes);

  /// The reader's side: what can be read now, all of it in one piece; empty when there is nothing.
  std::span<const std::uint8_t> readable() const;
  /// The first `bytes` of readable() have been read.
  void consume(std::size_t bytes);

  /// One polling period of a side that waits: half a millisecond.
  static void wait();

 private:
  /// Bytes written and read so far, each on its own cache line against false sharing.
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
