#pragma once
// The guest's RAM as the emulator has it, and beside it a shadow: what the processor and its bus
// have last seen of every byte. Where the two differ somebody else wrote, a device by DMA or the
// emulator's own page walker. Firmware - ROM, and RAM in its place - has no shadow and is asked for
// each time.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace citcat::monitor {

/// Bytes from a linear or physical address to the end of its page.
inline unsigned left_in_page(std::uint64_t address) {
  return 0x1000 - static_cast<unsigned>(address & 0xfff);
}

class GuestMemory {
 public:
  /// Finds the mapping of the memory backend in this process by its name in /proc/self/maps.
  /// Returns false when there is none, or several.
  bool find(const std::string& backend_name);
  /// How the emulator reads and writes any physical address, as its devices do.
  using PhysicalAccess = void (*)(std::uint64_t address, void* bytes, std::uint64_t size,
                                  bool store);
  /// Without it firmware cannot be read.
  void set_physical_access(PhysicalAccess access) { access_ = access; }
  /// The shadow takes RAM as it is now. Needs find() to have succeeded.
  bool snapshot();

  std::uint32_t bytes() const { return bytes_; }
  /// RAM at this address that the processor reads as it is. The legacy hole at 640 KiB holds
  /// screen memory and ROM, or copies of ROM that may be write-protected.
  bool is_ram(std::uint32_t address, std::uint32_t size) const {
    return address < bytes_ && size <= bytes_ - address &&
           (address + size <= kHoleBegin || address >= kHoleEnd);
  }
  /// What `read` and `write` reach: RAM, and where a PC has its firmware. Not devices, for which it
  /// makes a difference whether they are read.
  bool is_readable(std::uint32_t address, std::uint32_t size) const {
    if (is_ram(address, size)) return true;
    const auto within = [&](std::uint32_t begin, std::uint32_t bytes) {
      return address - begin < bytes && size <= bytes - (address - begin);
    };
    return access_ != nullptr && (within(kFirmwareBegin, kHoleEnd - kFirmwareBegin) ||
                                  within(kResetFirmwareBegin, ~kResetFirmwareBegin + 1));
  }
  /// Bytes of readable memory as they are now.
  void read(std::uint32_t address, std::span<std::uint8_t> bytes) const {
    if (is_ram(address, static_cast<std::uint32_t>(bytes.size())))
      std::memcpy(bytes.data(), ram_ + address, bytes.size());
    else
      access_(address, bytes.data(), bytes.size(), false);
  }
  /// A store that the processor makes and the emulator does not. ROM stays what it is.
  void write(std::uint32_t address, std::span<std::uint8_t> bytes) {
    if (is_ram(address, static_cast<std::uint32_t>(bytes.size())))
      correct(address, bytes);
    else
      access_(address, bytes.data(), bytes.size(), true);
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
  // Behind the screen's memory there are ROMs up to 1 MiB. The processor starts at the end of 4
  // GiB.
  static constexpr std::uint32_t kFirmwareBegin = 0xc0000, kResetFirmwareBegin = 0xfff00000;

  std::uint8_t* ram_ = nullptr;
  std::uint8_t* shadow_ = nullptr;
  std::uint32_t bytes_ = 0;
  PhysicalAccess access_ = nullptr;
};

}  // namespace citcat::monitor
