// The interrupt of long mode (Intel SDM vol. 3, 6.14): SS, RSP, RFLAGS, CS and RIP are pushed at
// every level, downward from an address that is a multiple of 16.

#include <array>

#include "replay/infer/registers/protected_entry.h"
#include "replay/machine/cpu_context.h"

namespace citcat {
namespace {

constexpr std::uint32_t kLongFrame = 40, kLongGate = 16;

/// The gate's second dword: an interrupt or trap gate, whose lowest bits say which stack of the
/// interrupt stack table is taken (figure 6-8).
bool is_long_gate(std::uint32_t high) {
  return (high & kEntryPresent) != 0 && (high & 0x1ef8) == 0x0e00;
}

class LongModeEntryReader {
 public:
  LongModeEntryReader(std::uint8_t vector, std::span<const BusTransaction> traffic,
                      const MemoryImage& image)
      : traffic_(traffic, image, kLongFrame) {
    entry_.long_mode = true;
    entry_.vector = vector;
    entry_.frame_bytes = kLongFrame;
  }
  std::optional<ProtectedEntry> read() {
    if (!traffic_.handler() || !find_gate() || !find_code() || !find_frame()) return std::nullopt;
    entry_.handler = *traffic_.handler();
    return entry_;
  }

 private:
  bool find_gate() {
    return traffic_.find_pair(entry_.gate, [&](PhysAddr at, std::uint32_t low, std::uint32_t high) {
      const auto upper = traffic_.dword(at.plus32(8));
      if (!is_long_gate(high) || !upper || !traffic_.was_read(at, kLongGate - 4)) return false;
      entry_.handler_cs = static_cast<std::uint16_t>(low >> 16);
      entry_.handler_ip = std::uint64_t{*upper} << 32 | (high & 0xffff0000) | (low & 0xffff);
      stack_number_ = high & 7;
      return (entry_.handler_cs & 4) == 0 && CpuContext::is_canonical(entry_.handler_ip);
    });
  }
  bool find_code() {
    return traffic_.find_pair(entry_.code_descriptor,
                              [&](PhysAddr at, std::uint32_t, std::uint32_t high) {
                                return !overlap(at, 8, entry_.gate, kLongGate) &&
                                       is_code_descriptor(high) && (high & kEntryLongCode) != 0;
                              });
  }
  bool find_frame() {
    for (const EntryTraffic::Byte& b : traffic_.writes()) {
      if (b.address.offset_in(16) == 16 - kLongFrame % 16 && is_frame(b.address)) return true;
    }
    return false;
  }

  bool is_frame(PhysAddr lowest) {
    std::array<std::uint64_t, kLongFrame / 8> slot{};
    for (std::uint32_t i = 0; i < slot.size(); ++i) {
      const auto low = traffic_.stored(lowest.plus32(8 * i));
      const auto high = traffic_.stored(lowest.plus32(8 * i + 4));
      if (!low || !high) return false;
      slot[i] = std::uint64_t{*high} << 32 | *low;
    }
    const auto [rip, cs, rflags, rsp, ss] = slot;
    const std::uint32_t from = cs & 3;
    if (!may_be_flags(rflags) || cs > 0xffff || ss > 0xffff || from < entry_.level()) return false;
    entry_.ip = rip;
    entry_.cs = static_cast<std::uint16_t>(cs);
    entry_.flags = rflags;
    entry_.frame = lowest;
    entry_.stack = {static_cast<std::uint16_t>(ss), rsp};
    if (from == entry_.level() && stack_number_ == 0) return begins_below(rsp);
    return find_task_stack();
  }
  /// The frame is the one that is pushed where RSP is `top`, as far as pages show.
  bool begins_below(std::uint64_t top) const {
    const std::uint64_t lowest = (top & ~std::uint64_t{15}) - kLongFrame;
    return ((lowest ^ entry_.frame.value) & kPageMask) == 0;
  }
  /// The task segment holds RSP of each inner level, and the interrupt stack table (figure 8-11).
  bool find_task_stack() {
    const std::uint32_t offset =
        stack_number_ != 0 ? 36 + 8 * (stack_number_ - 1) : 4 + 8 * entry_.level();
    for (const PhysAddr at : traffic_.reads()) {
      const auto inner = traffic_.quad(at);
      const bool is_other =
          overlap(at, 8, entry_.gate, kLongGate) || overlap(at, 8, entry_.code_descriptor, 8);
      if (!inner || is_other || !traffic_.was_read(at, 8)) continue;
      if (!CpuContext::is_canonical(*inner) || !begins_below(*inner)) continue;
      entry_.task_stack = {at, offset};
      return true;
    }
    return false;
  }

  const EntryTraffic traffic_;
  ProtectedEntry entry_{};
  std::uint32_t stack_number_ = 0;  ///< in the interrupt stack table, 0 for none
};

}  // namespace

std::optional<ProtectedEntry> find_long_mode_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image) {
  return LongModeEntryReader(vector, traffic, image).read();
}

}  // namespace citcat
