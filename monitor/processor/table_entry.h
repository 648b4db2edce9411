#pragma once
// An entry of a descriptor table.

#include <cstdint>

namespace citcat::monitor {

/// A descriptor or gate as it lies in its table.
struct TableEntry {
  std::uint64_t linear = 0;
  std::uint32_t low = 0, high = 0;
  std::uint32_t base() const { return (low >> 16) | ((high & 0xff) << 16) | (high & 0xff000000); }
  unsigned dpl() const { return (high >> 13) & 3; }
  unsigned type() const { return (high >> 8) & 0x1f; }
  bool present() const { return (high & 0x8000) != 0; }
  bool is_code() const { return (high & 0x1800) == 0x1800; }
  bool conforming() const { return (high & 0x400) != 0; }
  bool is_writable_data() const { return (high & 0x1a00) == 0x1200; }
  /// The last offset of a segment that does not expand down.
  std::uint32_t limit() const {
    const std::uint32_t units = (low & 0xffff) | (high & 0xf0000);
    return (high & 0x800000) != 0 ? units << 12 | 0xfff : units;
  }
  /// The selector in a gate.
  std::uint16_t selector() const { return static_cast<std::uint16_t>(low >> 16); }
  /// In long mode: which stack of the interrupt stack table, 0 for none.
  unsigned interrupt_stack() const { return high & 7; }
  /// What is where gates of 32 bits have the upper half of their offset.
  std::uint16_t upper_offset() const { return static_cast<std::uint16_t>(high >> 16); }
};

}  // namespace citcat::monitor
