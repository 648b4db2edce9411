#pragma once
// A queue whose elements keep their memory: std::deque allocates and frees as it moves along.

#include <cstddef>
#include <vector>

#include "formats/io/error.h"

namespace citcat {

/// Grows when it is full, and reuses the slots (and the memory of the elements in them) of elements
/// that were removed.
template <typename T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }

  /// The place of a new last element; it holds whatever an earlier one left there.
  T& push_back() {
    if (size_ == slots_.size()) grow();
    return (*this)[size_++];
  }
  void pop_front() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  /// Leaves the first `size`.
  void truncate(std::size_t size) {
    CITCAT_ASSERT(size <= size_);
    size_ = size;
  }
  void erase(std::size_t i) {
    for (; i + 1 < size_; ++i) (*this)[i] = (*this)[i + 1];
    truncate(size_ - 1);
  }
  void clear() { first_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> more(slots_.empty() ? kFirst : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) more[i] = (*this)[i];
    slots_.swap(more);
    first_ = 0;
  }

  static constexpr std::size_t kFirst = 8;
  std::vector<T> slots_;  ///< 2^n
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace citcat
