#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace citcat {

/// A fixed-size array whose elements start as zero bytes, whatever their initializers say. Pages of
/// it that are never touched cost neither time nor memory, as in a table of all page frames: such
/// pages come from the system, because calloc() would clear memory that the process used before.
template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// `size` elements, more than none. Throws std::bad_alloc.
  explicit ZeroedArray(std::size_t size) : size_(size), data_(map(size * sizeof(T))) {}
  ZeroedArray(ZeroedArray&& other) noexcept
      : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~ZeroedArray() {
    if (data_ != nullptr) ::munmap(data_, size_ * sizeof(T));
  }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  /// All elements are zero again.
  void clear() { *this = ZeroedArray(size_); }

 private:
  static T* map(std::size_t bytes) {
    void* const p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(p);
  }

  std::size_t size_;
  T* data_;
};

}  // namespace citcat
