#pragma once
// Objects that are dear to make, handed from one piece of work to the next.

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace citcat {

/// Keeps what nobody uses at the moment. Any thread may call any member.
template <typename T>
class Recycler {
 public:
  /// One that was given back, as it was then; a new one where there is none.
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
