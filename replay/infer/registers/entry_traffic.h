#pragma once
// The traffic of taking an interrupt, from its acknowledge to the first code of the handler, sorted
// by address, for the readers of its frame.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/memory_image.h"

namespace citcat {

/// The dword at an address that lies within one frame; nullopt where a byte of it is not known.
inline std::optional<std::uint32_t> known_dword(const MemoryImage& image, PhysAddr at) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto byte = image.byte(at.plus32(i));
    if (!byte) return std::nullopt;
    value |= std::uint32_t{*byte} << (8 * i);
  }
  return value;
}

class EntryTraffic {
 public:
  struct Byte {
    PhysAddr address;
    std::uint8_t value = 0;
  };

  /// The first transaction is the acknowledge. A frame has at least `frame_bytes`.
  EntryTraffic(std::span<const BusTransaction> traffic, const MemoryImage& image,
               std::size_t frame_bytes)
      : image_(image) {
    collect(traffic, frame_bytes);
  }

  /// The first code fetched after the frame; nullopt where none is.
  const std::optional<PhysAddr>& handler() const { return handler_; }
  /// Addresses of bytes, in the order of the bus.
  const std::vector<PhysAddr>& reads() const { return reads_; }
  const std::vector<Byte>& writes() const { return writes_; }
  /// All of `bytes` bytes were read.
  bool was_read(PhysAddr at, std::uint32_t bytes = 1) const {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      if (std::find(reads_.begin(), reads_.end(), at.plus32(i)) == reads_.end()) return false;
    }
    return true;
  }
  /// A dword that was written.
  std::optional<std::uint32_t> stored(PhysAddr at) const {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const auto it = std::find_if(writes_.begin(), writes_.end(),
                                   [&](const Byte& b) { return b.address == at.plus32(i); });
      if (it == writes_.end()) return std::nullopt;
      value |= std::uint32_t{it->value} << (8 * i);
    }
    return value;
  }
  std::optional<std::uint32_t> dword(PhysAddr at) const { return known_dword(image_, at); }
  std::optional<std::uint64_t> quad(PhysAddr at) const {
    const auto low = dword(at), high = dword(at.plus32(4));
    if (!low || !high) return std::nullopt;
    return std::uint64_t{*high} << 32 | *low;
  }
  /// Puts the place of the first eight bytes read, in the order of the bus, whose two dwords are
  /// `wanted`, into `found`. False where there are none.
  template <class F>
  bool find_pair(PhysAddr& found, F&& wanted) const {
    for (const PhysAddr at : reads_) {
      if (!was_read(at.plus32(7))) continue;
      const auto low = dword(at), high = dword(at.plus32(4));
      if (!low || !high || !wanted(at, *low, *high)) continue;
      found = at;
      return true;
    }
    return false;
  }

 private:
  void collect(std::span<const BusTransaction> traffic, std::size_t frame_bytes) {
    for (const BusTransaction& t : traffic) {
      if (t.op == BusOp::data_read) {
        for (std::uint32_t i = 0; i < t.size; ++i) reads_.push_back(t.address.plus32(i));
      } else if (t.op == BusOp::data_write) {
        for (std::uint32_t i = 0; i < t.size; ++i) {
          writes_.push_back({t.address.plus32(i), t.data[i]});
        }
      } else if (t.op == BusOp::code_read && writes_.size() >= frame_bytes) {
        handler_ = t.address;
        return;
      }
    }
  }

  const MemoryImage& image_;
  std::vector<PhysAddr> reads_;
  std::vector<Byte> writes_;
  std::optional<PhysAddr> handler_;
};

// Bits in the second dword of gates and descriptors (Intel SDM vol. 3, figures 3-8, 6-2 and 6-8).
inline constexpr std::uint32_t kEntryPresent = 1u << 15, kEntryLongCode = 1u << 21;

inline bool is_code_descriptor(std::uint32_t high) {
  constexpr std::uint32_t kSegment = 1u << 12, kCode = 1u << 11;
  return (high & kEntryPresent) != 0 && (high & kSegment) != 0 && (high & kCode) != 0;
}
/// Bits that EFLAGS always has, and that it never has (SDM vol. 1, figure 3-8).
inline bool may_be_flags(std::uint64_t value) { return (value & ~std::uint64_t{0x3f7fd5}) == 2; }

}  // namespace citcat
