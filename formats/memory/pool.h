#pragma once
// A bounded pool of large objects that are passed between threads.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace citcat {

/// Lends objects in the state in which they were returned. Dropping the last reference to an object
/// returns it, on any thread, and also after the pool itself is gone.
template <typename T>
class Pool {
 public:
  /// At most `most` objects, made when first needed. A thread that has to wait for one is woken
  /// once `enough` have been returned (see Handover), so other threads must never hold on to more
  /// than `most - enough` while they wait for it.
  Pool(std::size_t most, std::size_t enough) : state_(std::make_shared<State>(most, enough)) {}

  /// Waits for an object. Null when the pool was closed. For one thread.
  std::shared_ptr<T> take() {
    std::unique_ptr<T> object = state_->take();
    if (!object) return nullptr;
    return std::shared_ptr<T>(object.release(),
                              [state = state_](T* back) { state->give_back(back); });
  }
  /// From now on take() returns null at once.
  void close() { state_->close(); }

 private:
  class State {
   public:
    State(std::size_t most, std::size_t enough) : enough_(enough), unmade_(most) {
      idle_.reserve(most);
    }

    std::unique_ptr<T> take() {
      std::unique_lock lock(mutex_);
      if (closed_) return nullptr;
      if (idle_.empty() && unmade_ != 0) {
        --unmade_;
        return std::make_unique<T>();
      }
      if (idle_.empty()) {
        waits_ = true;
        returned_.wait(lock, [this] { return closed_ || idle_.size() >= enough_; });
        waits_ = false;
        if (closed_) return nullptr;
      }
      std::unique_ptr<T> object = std::move(idle_.back());
      idle_.pop_back();
      return object;
    }
    void give_back(T* object) {
      std::unique_lock lock(mutex_);
      idle_.emplace_back(object);
      const bool wake = waits_ && idle_.size() >= enough_;
      lock.unlock();
      if (wake) returned_.notify_one();
    }
    void close() {
      {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
      }
      returned_.notify_one();
    }

   private:
    const std::size_t enough_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<T>> idle_;
    std::size_t unmade_;
    bool waits_ = false, closed_ = false;
  };

  std::shared_ptr<State> state_;
};

}  // namespace citcat
