#pragma once
// Pieces of work on their way from one thread to the next.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace citcat {

/// A queue between two threads. It has no limit of its own: where as many pieces as there are go
/// round, from one thread to the other and back, there are never more.
template <typename T>
class Handover {
 public:
  /// Who found the queue empty goes on when `enough` pieces are there: woken for each of them, two
  /// threads that are about as fast would do little but wake each other. Fewer than go round.
  explicit Handover(std::size_t enough) : enough_(enough) {}

  void put(T piece) {
    std::unique_lock lock(mutex_);
    pieces_.push_back(std::move(piece));
    const bool wake = waits_ && pieces_.size() >= enough_;
    lock.unlock();
    if (wake) filled_.notify_one();
  }
  /// Waits for a piece. Nothing when the queue was closed and is empty.
  std::optional<T> take() {
    std::unique_lock lock(mutex_);
    if (pieces_.empty()) {
      waits_ = true;
      filled_.wait(lock, [this] { return closed_ || pieces_.size() >= enough_; });
      waits_ = false;
    }
    if (pieces_.empty()) return std::nullopt;
    std::optional<T> piece(std::move(pieces_.front()));
    pieces_.pop_front();
    return piece;
  }
  /// Nothing more will be put; what is there can be taken.
  void close() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    filled_.notify_one();
  }

 private:
  const std::size_t enough_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> pieces_;
  bool waits_ = false, closed_ = false;
};

}  // namespace citcat
