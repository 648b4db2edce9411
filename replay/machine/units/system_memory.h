#pragma once
// Memory as the processor itself uses it: descriptor tables, task segments, interrupt vectors and
// frames.

#include <cstdint>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// Accesses are made with supervisor rights unless told otherwise, are told as
/// AccessKind::system, and throw PageFault or UndefinedMemory. Sizes are 1 to 4 bytes, of what is
/// wide up to 8.
class SystemMemory {
 public:
  /// All must outlive the object.
  explicit SystemMemory(CpuContext& cpu) : cpu_(cpu) {}

  /// `size` bytes at `linear`.
  std::uint32_t read(LinearAddr linear, std::uint32_t size) {
    return static_cast<std::uint32_t>(read_wide(linear, size));
  }
  std::uint64_t read_wide(LinearAddr linear, std::uint32_t size);
  /// Writes the low `size` bytes; `user`: with the rights of level 3.
  void write(LinearAddr linear, std::uint64_t value, std::uint32_t size, bool user = false);
  /// Walks to the one or two pages of [first, last], as an access would that goes through them
  /// upward; throws what it would throw.
  void page_in(LinearAddr first, LinearAddr last, Access access);

 private:
  CpuContext& cpu_;
};

}  // namespace citcat
