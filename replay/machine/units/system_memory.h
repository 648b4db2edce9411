#pragma once
// Memory as the processor itself uses it: descriptor tables, task segments, interrupt vectors and
// frames.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// Accesses are made with supervisor rights except for pushes, are reported as AccessKind::system,
/// and throw PageFault or UndefinedMemory. Sizes are 1 to 4 bytes, of what is wide up to 8.
class SystemMemory {
 public:
  /// All must outlive the object.
  explicit SystemMemory(CpuContext& cpu) : cpu_(cpu) {}

  /// `size` bytes at `linear`.
  std::uint32_t read(LinearAddr linear, std::uint32_t size) {
    return static_cast<std::uint32_t>(read_wide(linear, size));
  }
  std::uint64_t read_wide(LinearAddr linear, std::uint32_t size);
  /// Writes the low `size` bytes.
  void write(LinearAddr linear, std::uint64_t value, std::uint32_t size) {
    store(linear, value, size,
          [this](LinearAddr at) { return cpu_.mmu.translate(at, Access::write, Who::processor); });
  }
  /// The same to a program's stack; `user`: with the rights of level 3.
  void push(LinearAddr linear, std::uint64_t value, std::uint32_t size, bool user) {
    store(linear, value, size,
          [&](LinearAddr at) { return cpu_.mmu.translate(at, Access::write, program(user)); });
  }
  /// Walks to the one or two pages of [first, last], as an access would that goes through them
  /// upward; throws what it would throw.
  void page_in(LinearAddr first, LinearAddr last, Access access);

 private:
  template <class Translate>
  void store(LinearAddr linear, std::uint64_t value, std::uint32_t size, Translate&& translate);

  CpuContext& cpu_;
};

template <class Translate>
void SystemMemory::store(LinearAddr linear, std::uint64_t value, std::uint32_t size,
                         Translate&& translate) {
  std::array<std::uint8_t, 8> bytes;
  std::memcpy(bytes.data(), &value, bytes.size());
  for (std::uint32_t i = 0; i < size;) {
    const LinearAddr here = cpu_.onward_in_system(linear, i);
    const std::uint32_t n = std::min(size - i, kPageSize - here.offset_in_page());
    const PhysAddr at = translate(here);
    cpu_.memory.store(at, std::span(bytes).subspan(i, n));
    cpu_.audience.write(at, std::span(bytes).subspan(i, n), AccessKind::system, cpu_.position);
    i += n;
  }
}

}  // namespace citcat
