#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace citcat {

/// A fixed-size array whose elements start as zero bytes, whatever their initializers say. Pages of
/// it that are never touched cost neither time nor memory, as in a table of all page frames.
template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit ZeroedArray(std::size_t size) : size_(size), data_(zeros(size)) {}
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return size_; }
  /// All elements are zero again.
  void clear() { data_.reset(zeros(size_)); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  static T* zeros(std::size_t size) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): elements may well be pointers
    void* const p = std::calloc(size, sizeof(T));
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }

  std::size_t size_;
  std::unique_ptr<T, Free> data_;
};

}  // namespace citcat
