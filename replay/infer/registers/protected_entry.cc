#include "replay/infer/registers/protected_entry.h"

#include <array>

namespace citcat {
namespace {

constexpr std::uint32_t kFrame = 12, kInnerFrame = 20;

/// The gate's second dword: a 32-bit interrupt or trap gate (SDM vol. 3, figure 6-2).
bool is_gate(std::uint32_t high) {
  return (high & kEntryPresent) != 0 && (high & 0x1ee0) == 0x0e00;
}

/// What the processor did between the acknowledge and the handler's first instruction.
class EntryReader {
 public:
  EntryReader(std::uint8_t vector, std::span<const BusTransaction> traffic,
              const MemoryImage& image)
      : image_(image), traffic_(traffic, image, kFrame) {
    entry_.vector = vector;
  }
  std::optional<ProtectedEntry> read() {
    if (!traffic_.handler() || !find_gate() || !find_code() || !find_frame()) return std::nullopt;
    entry_.handler = *traffic_.handler();
    return entry_;
  }

 private:
  bool find_gate() {
    return traffic_.find_pair(entry_.gate, [&](PhysAddr, std::uint32_t low, std::uint32_t high) {
      if (!is_gate(high)) return false;
      entry_.handler_cs = static_cast<std::uint16_t>(low >> 16);
      entry_.handler_ip = (low & 0xffff) | (high & 0xffff0000);
      return (entry_.handler_cs & 4) == 0;
    });
  }
  bool find_code() {
    return traffic_.find_pair(entry_.code_descriptor,
                              [&](PhysAddr at, std::uint32_t, std::uint32_t high) {
                                return at != entry_.gate && is_code_descriptor(high);
                              });
  }

  /// A frame of so many bytes begins here.
  bool is_frame(PhysAddr lowest, std::uint32_t bytes) {
    std::array<std::uint32_t, kInnerFrame / 4> slot{};
    for (std::uint32_t i = 0; i < bytes / 4; ++i) {
      const auto value = traffic_.stored(lowest.plus32(4 * i));
      if (!value) return false;
      slot[i] = *value;
    }
    const bool inner = bytes == kInnerFrame;
    const std::uint32_t from = slot[1] & 3;
    if (!may_be_flags(slot[2]) || (inner ? from <= entry_.level() : from != entry_.level())) {
      return false;
    }
    entry_.ip = slot[0];
    entry_.cs = static_cast<std::uint16_t>(slot[1]);
    entry_.flags = slot[2];
    entry_.frame = lowest;
    entry_.frame_bytes = bytes;
    entry_.stack.reset();
    return !inner || find_inner_stack(lowest.plus32(bytes), slot[3], slot[4]);
  }
  /// The task segment holds, side by side, ESP and SS of each inner level, whose descriptor is
  /// read (SDM vol. 3, figure 7-2: ESP0 is at 4, ESP1 at 12, ESP2 at 20).
  bool find_inner_stack(PhysAddr top, std::uint32_t esp, std::uint32_t ss) {
    const std::uint64_t table = entry_.code_descriptor.value - (entry_.handler_cs & 0xfff8u);
    for (const PhysAddr at : traffic_.reads()) {
      const auto inner = traffic_.dword(at);
      const auto low = image_.byte(at.plus32(4)), high = image_.byte(at.plus32(5));
      if (!inner || !low || !high) continue;
      if (!traffic_.was_read(at.plus32(3)) || !traffic_.was_read(at.plus32(5))) continue;
      const std::uint32_t selector = *low | std::uint32_t{*high} << 8;
      if (((*inner ^ top.value) & kPageMask) != 0 || (selector & 3) != entry_.level()) continue;
      if (!traffic_.was_read(PhysAddr{table}.plus32(selector & 0xfff8))) continue;
      entry_.stack = {static_cast<std::uint16_t>(ss), esp};
      entry_.task_stack = {at, 4 + 8 * entry_.level()};
      return true;
    }
    return false;
  }
  bool find_frame() {
    for (const std::uint32_t bytes : {kInnerFrame, kFrame}) {
      for (const EntryTraffic::Byte& b : traffic_.writes()) {
        if (is_frame(b.address, bytes)) return true;
      }
    }
    return false;
  }

  const MemoryImage& image_;
  const EntryTraffic traffic_;
  ProtectedEntry entry_{};
};

}  // namespace

std::optional<ProtectedEntry> find_protected_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image) {
  return EntryReader(vector, traffic, image).read();
}

}  // namespace citcat
