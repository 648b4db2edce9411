#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Notices that the library's cache of translated code is half full for the first time.
///
/// Unicorn 2.1.1 takes the region of its cache that it begins with, which is all of it, for one
/// that is still free. When the cache is full, the library translates code over code that is still
/// executed. After a flush it does what is needed by itself; but a flush clears the whole cache, so
/// flushing at the beginning would cost most replays more than it gains.
class CodeCacheWatch {
 public:
  /// The library has mapped these bytes for its cache.
  void watch(std::span<std::uint8_t> cache);
  /// Some hundred nanoseconds. Never again after stop().
  bool half_full() const;
  /// The cache was flushed.
  void stop() { middle_ = nullptr; }

 private:
  void* middle_ = nullptr;
};

}  // namespace citcat
