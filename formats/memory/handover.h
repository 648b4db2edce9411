#pragma once
// Pieces of work on their way from one thread to the next.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace citcat {

/// A queue between two threads. It has no limit of its own: its users bound it by reusing a fixed
/// number of pieces, which travel to the other thread and back.
template <typename T>
class Handover {
 public:
  /// A thread that found the queue empty is woken once `enough` pieces wait: with a wake-up for
  /// each, two threads of about equal speed would do little else. Less than the number of pieces.
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
  /// No more pieces will come; those in the queue can still be taken.
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
