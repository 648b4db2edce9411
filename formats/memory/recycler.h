#pragma once
// Reuse of objects that are expensive to make.

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace citcat {

/// Keeps objects that are not in use. Thread-safe.
template <typename T>
class Recycler {
 public:
  /// An object that was given back, in the state it had then; a new one if there is none.
  std::shared_ptr<T> take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return std::make_shared<T>();
    std::shared_ptr<T> found = std::move(idle_.back());
    idle_.pop_back();
    return found;
  }
  void give_back(std::shared_ptr<T> object) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(object));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<T>> idle_;
};

}  // namespace citcat
