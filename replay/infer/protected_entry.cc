#include "replay/infer/protected_entry.h"

#include <algorithm>
#include <array>

namespace citcat {
namespace {

constexpr std::uint32_t kPresent = 1u << 15;
constexpr std::uint32_t kFrame = 12, kInnerFrame = 20;

/// The gate's second dword: a 32-bit interrupt or trap gate (SDM vol. 3, figure 6-2).
bool is_gate(std::uint32_t high) { return (high & kPresent) != 0 && (high & 0x1ee0) == 0x0e00; }
bool is_code(std::uint32_t high) {
  constexpr std::uint32_t kSegment = 1u << 12, kCode = 1u << 11;
  return (high & kPresent) != 0 && (high & kSegment) != 0 && (high & kCode) != 0;
}
/// Bits that EFLAGS always has, and that it never has (SDM vol. 1, figure 3-8).
bool may_be_flags(std::uint32_t value) { return (value & 0xffc0802a) == 2; }

/// What the processor did between the acknowledge and the handler's first instruction.
class EntryReader {
 public:
  EntryReader(std::uint8_t vector, std::span<const BusTransaction> traffic,
              const MemoryImage& image)
      : image_(image) {
    entry_.vector = vector;
    collect(traffic);
  }
  std::optional<ProtectedEntry> read() {
    if (!handler_ || !find_gate() || !find_code() || !find_frame()) return std::nullopt;
    entry_.handler = *handler_;
    return entry_;
  }

 private:
  struct Byte {
    std::uint32_t address = 0;
    std::uint8_t value = 0;
  };

  void collect(std::span<const BusTransaction> traffic) {
    for (const BusTransaction& t : traffic) {
      if (t.op == BusOp::data_read) {
        for (std::uint32_t i = 0; i < t.size; ++i) reads_.push_back(t.address.plus32(i).low32());
      } else if (t.op == BusOp::data_write) {
        for (std::uint32_t i = 0; i < t.size; ++i) {
          writes_.push_back({t.address.plus32(i).low32(), t.data[i]});
        }
      } else if (t.op == BusOp::code_read && writes_.size() >= kFrame) {
        handler_ = t.address;
        return;
      }
    }
  }
  bool was_read(std::uint32_t address) const {
    return std::find(reads_.begin(), reads_.end(), address) != reads_.end();
  }
  /// Addresses, in the order of the bus, of eight bytes that were read.
  template <class F>
  bool find_pair(F&& wanted) {
    for (const std::uint32_t at : reads_) {
      if (!was_read(at + 7)) continue;
      const auto low = known_dword(image_, PhysAddr{at});
      const auto high = known_dword(image_, PhysAddr{at + 4});
      if (low && high && wanted(PhysAddr{at}, *low, *high)) return true;
    }
    return false;
  }
  bool find_gate() {
    return find_pair([&](PhysAddr at, std::uint32_t low, std::uint32_t high) {
      if (!is_gate(high)) return false;
      entry_.gate = at;
      entry_.handler_cs = static_cast<std::uint16_t>(low >> 16);
      entry_.handler_eip = (low & 0xffff) | (high & 0xffff0000);
      return (entry_.handler_cs & 4) == 0;
    });
  }
  bool find_code() {
    return find_pair([&](PhysAddr at, std::uint32_t, std::uint32_t high) {
      if (at == entry_.gate || !is_code(high)) return false;
      entry_.code_descriptor = at;
      return true;
    });
  }

  std::optional<std::uint32_t> stored(std::uint32_t address) const {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const auto it = std::find_if(writes_.begin(), writes_.end(),
                                   [&](const Byte& b) { return b.address == address + i; });
      if (it == writes_.end()) return std::nullopt;
      value |= std::uint32_t{it->value} << (8 * i);
    }
    return value;
  }
  /// A frame of so many bytes begins here.
  bool is_frame(std::uint32_t lowest, std::uint32_t bytes) {
    std::array<std::uint32_t, kInnerFrame / 4> slot{};
    for (std::uint32_t i = 0; i < bytes / 4; ++i) {
      const auto value = stored(lowest + 4 * i);
      if (!value) return false;
      slot[i] = *value;
    }
    const bool inner = bytes == kInnerFrame;
    const std::uint32_t from = slot[1] & 3;
    if (!may_be_flags(slot[2]) || (inner ? from <= entry_.level() : from != entry_.level())) {
      return false;
    }
    entry_.eip = slot[0];
    entry_.cs = static_cast<std::uint16_t>(slot[1]);
    entry_.eflags = slot[2];
    entry_.frame = PhysAddr{lowest};
    entry_.frame_bytes = bytes;
    entry_.stack.reset();
    return !inner || find_inner_stack(lowest + bytes, slot[3], slot[4]);
  }
  /// The task segment holds, side by side, ESP and SS of each inner level, whose descriptor is
  /// read.
  bool find_inner_stack(std::uint32_t top, std::uint32_t esp, std::uint32_t ss) {
    const std::uint32_t table = entry_.code_descriptor.low32() - (entry_.handler_cs & 0xfff8u);
    for (const std::uint32_t at : reads_) {
      const auto inner = known_dword(image_, PhysAddr{at});
      const auto low = image_.byte(PhysAddr{at + 4}), high = image_.byte(PhysAddr{at + 5});
      if (!inner || !low || !high || !was_read(at + 3) || !was_read(at + 5)) continue;
      const std::uint32_t selector = *low | std::uint32_t{*high} << 8;
      if (((*inner ^ top) & kPageMask) != 0 || (selector & 3) != entry_.level()) continue;
      if (!was_read(table + (selector & 0xfff8))) continue;
      entry_.stack = {static_cast<std::uint16_t>(ss), esp, PhysAddr{at}, *inner};
      return true;
    }
    return false;
  }
  bool find_frame() {
    for (const std::uint32_t bytes : {kInnerFrame, kFrame}) {
      for (const Byte& b : writes_) {
        if (is_frame(b.address, bytes)) return true;
      }
    }
    return false;
  }

  const MemoryImage& image_;
  ProtectedEntry entry_{};
  std::vector<std::uint32_t> reads_;
  std::vector<Byte> writes_;
  std::optional<PhysAddr> handler_;
};

}  // namespace

std::optional<std::uint32_t> known_dword(const MemoryImage& image, PhysAddr at) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto byte = image.byte(at.plus32(i));
    if (!byte) return std::nullopt;
    value |= std::uint32_t{*byte} << (8 * i);
  }
  return value;
}

std::optional<ProtectedEntry> find_protected_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image) {
  return EntryReader(vector, traffic, image).read();
}

}  // namespace citcat
