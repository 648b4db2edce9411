#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace citcat {

/// A FIFO queue in one contiguous buffer that is reused: for queues that are usually short and
/// change often, with elements so large that std::deque would allocate each on its own. Any
/// insertion or removal invalidates references and iterators.
template <class T>
class ShortQueue {
 public:
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  bool empty() const { return first_ == end_; }
  std::size_t size() const { return end_ - first_; }
  T& operator[](std::size_t i) { return items_[first_ + i]; }
  const T& operator[](std::size_t i) const { return items_[first_ + i]; }
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& back() { return items_.back(); }
  iterator begin() { return items_.begin() + at(first_); }
  iterator end() { return items_.end(); }
  const_iterator begin() const { return items_.begin() + at(first_); }
  const_iterator end() const { return items_.end(); }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    T& item = items_.emplace_back(std::forward<Args>(args)...);
    ++end_;
    return item;
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  void pop_front() { drop_front(1); }
  void drop_front(std::size_t count) {
    first_ += count;
    if (first_ == end_) {
      clear();
    } else if (first_ >= kMaxDropped && first_ >= end_ / 2) {
      items_.erase(items_.begin(), begin());
      end_ -= first_;
      first_ = 0;
    }
  }
  void drop_back(std::size_t count) {
    end_ -= count;
    items_.resize(end_);
  }
  /// Returns the element after it.
  iterator erase(iterator item) {
    if (item == begin()) {
      drop_front(1);
      return begin();
    }
    --end_;
    return items_.erase(item);
  }
  void clear() {
    items_.clear();
    first_ = end_ = 0;
  }

 private:
  /// Elements are moved to the front once this many have been dropped, and no fewer than remain.
  static constexpr std::size_t kMaxDropped = 64;
  static std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

  std::vector<T> items_;  ///< those before first_ are gone
  std::size_t first_ = 0;
  std::size_t end_ = 0;  ///< kept here because vector::size() would divide by the element's size
};

}  // namespace citcat
