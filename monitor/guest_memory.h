#pragma once
// The guest's RAM as the emulator has it, and beside it a shadow: what the processor and its bus
// have last seen of every byte. Where the two differ somebody else wrote, a device by DMA or the
// emulator's own page walker.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace citcat::monitor {

class GuestMemory {
 public:
  /// Finds the mapping of the memory backend in this process by its name in /proc/self/maps.
  /// Returns false when there is none, or several.
  bool find(const std::string& backend_name);
  /// The shadow takes RAM as it is now. Needs find() to have succeeded.
  bool snapshot();

  std::uint32_t bytes() const { return bytes_; }
  /// RAM at this address that the processor reads as it is. The legacy hole at 640 KiB holds
  /// screen memory and ROM, or copies of ROM that may be write-protected.
  bool is_ram(std::uint32_t address, std::uint32_t size) const {
    return address < bytes_ && size <= bytes_ - address &&
           (address + size <= kHoleBegin || address >= kHoleEnd);
  }
  /// The physical address of a host pointer into RAM, or ~0u.
  std::uint32_t address_of(const void* host) const {
    const auto* p = static_cast<const std::uint8_t*>(host);
    return p >= ram_ && p < ram_ + bytes_ ? static_cast<std::uint32_t>(p - ram_) : ~0u;
  }

  const std::uint8_t* live(std::uint32_t address) const { return ram_ + address; }
  std::uint8_t* shadow(std::uint32_t address) { return shadow_ + address; }
  bool differs(std::uint32_t address, std::uint32_t size) const {
    return std::memcmp(ram_ + address, shadow_ + address, size) != 0;
  }
  /// Whether an aligned dword differs as an entry of page tables does that the emulator's walker
  /// has marked as accessed or dirty. The bus shows such a mark with the walk that makes it.
  bool is_marked(std::uint32_t address) const {
    std::uint32_t now = 0, before = 0;
    std::memcpy(&now, ram_ + address, sizeof now);
    std::memcpy(&before, shadow_ + address, sizeof before);
    constexpr std::uint32_t kPresent = 1, kMarks = 0x60;
    return now != before && (before & kPresent) != 0 && (now & ~kMarks) == (before & ~kMarks) &&
           (before & ~now) == 0;
  }
  void take(std::uint32_t address, std::uint32_t size) {
    std::memcpy(shadow_ + address, ram_ + address, size);
  }
  /// Makes RAM hold what a processor would have stored where the emulator stored something else, so
  /// that the machine goes on with what its bus has shown. Only from the processor's own thread.
  void correct(std::uint32_t address, std::span<const std::uint8_t> bytes) {
    std::memcpy(ram_ + address, bytes.data(), bytes.size());
  }
  /// The same for bytes that a processor would not have stored to.
  void restore(std::uint32_t address, std::uint32_t size) {
    std::memcpy(ram_ + address, shadow_ + address, size);
  }

 private:
  static constexpr std::uint32_t kHoleBegin = 0xa0000, kHoleEnd = 0x100000;

  std::uint8_t* ram_ = nullptr;
  std::uint8_t* shadow_ = nullptr;
  std::uint32_t bytes_ = 0;
};

}  // namespace citcat::monitor
