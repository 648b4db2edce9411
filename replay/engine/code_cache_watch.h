#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Notices that the library's cache of translated code is half full for the first time.
///
/// Unicorn 2.1.1 takes the region of its cache that it begins with, which is all of it, for one
/// that is still free. When it is full, it translates code over code that is still executed. After
/// a flush it knows better, and does by itself what is needed; but a flush clears the whole cache,
/// so that one at the beginning would cost most replays more than it is worth.
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
