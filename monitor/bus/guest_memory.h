#pragma once
// The guest's RAM as the emulator has it, and beside it a shadow: what the processor and its bus
// have last seen of every byte. Where the two differ, somebody else wrote: a device by DMA, or the
// emulator's own page walker. Firmware - ROM, and RAM in its place - has no shadow: its contents
// are read from the emulator each time.
//
// The emulator has all RAM in one piece, with the RAM beyond 4 GiB after the rest.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace citcat::monitor {

/// The address of a byte as the processor's pins carry it: up to 52 bits (Intel SDM vol. 3, 4.1.4).
using PhysicalAddress = std::uint64_t;

/// Whether a guest notices what the emulator stores differently from a processor.
enum class Notice : std::uint8_t {
  taken,
  // Only where software reads it, not where the processor does for itself:
  of_resume,    ///< RF in a frame, which is gone with the first instruction after IRET
  of_accessed,  ///< the accessed bit of a descriptor, at which the emulator never looks
};

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
  using PhysicalAccess = void (*)(PhysicalAddress address, void* bytes, std::uint64_t size,
                                  bool store);
  /// Without it firmware cannot be read.
  void set_physical_access(PhysicalAccess access) { access_ = access; }
  /// How the emulator finds the host's address of a physical one, and takes it back.
  using Map = void* (*)(PhysicalAddress address, std::uint64_t* size, bool store);
  using Unmap = void (*)(void* host, std::uint64_t size, bool store, std::uint64_t accessed);
  /// Finds out how much of RAM lies beyond 4 GiB. Needs find() to have succeeded; only from the
  /// processor's own thread. False where that cannot be known.
  bool find_high(Map map, Unmap unmap);
  /// The shadow takes RAM as it is now. Needs find() to have succeeded.
  bool snapshot();

  /// RAM from address 0 on.
  std::uint32_t low_bytes() const { return static_cast<std::uint32_t>(low_bytes_); }
  /// RAM at this address that the processor reads as it is. The legacy hole at 640 KiB holds
  /// screen memory and ROM, or copies of ROM that may be write-protected.
  bool is_ram(PhysicalAddress address, std::uint32_t size) const {
    if (address >= low_bytes_) return is_high_ram(address, size);
    return size <= low_bytes_ - address && (address + size <= kHoleBegin || address >= kHoleEnd);
  }
  /// What `read` and `write` reach: RAM, and where a PC has its firmware. Not devices, for which it
  /// makes a difference whether they are read.
  bool is_readable(PhysicalAddress address, std::uint32_t size) const {
    if (is_ram(address, size)) return true;
    const auto within = [&](PhysicalAddress begin, std::uint32_t bytes) {
      return address - begin < bytes && size <= bytes - (address - begin);
    };
    return is_smram(address, size) ||
           (access_ != nullptr && (within(kFirmwareBegin, kHoleEnd - kFirmwareBegin) ||
                                   within(kResetFirmwareBegin, ~kResetFirmwareBegin + 1)));
  }
  /// In system management mode: whether what is RAM there alone lies in the place of the screen's
  /// memory. The emulator has it where its RAM has these addresses.
  void show_smram(bool shown) { shows_smram_ = shown; }
  bool is_smram(PhysicalAddress address, std::uint32_t size) const {
    return shows_smram_ && address >= kHoleBegin && address + size <= kFirmwareBegin;
  }
  /// Bytes of readable memory as they are now.
  void read(PhysicalAddress address, std::span<std::uint8_t> bytes) const {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (is_ram(address, size) || is_smram(address, size))
      std::memcpy(bytes.data(), live(address), bytes.size());
    else
      access_(address, bytes.data(), bytes.size(), false);
  }
  /// A store that the processor makes and the emulator does not. ROM stays what it is.
  void write(PhysicalAddress address, std::span<std::uint8_t> bytes, Notice notice) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (is_ram(address, size))
      correct(address, bytes, notice);
    else if (is_smram(address, size) && !observes_)
      put(address, bytes);
    else if (!observes_)
      access_(address, bytes.data(), bytes.size(), true);
  }
  /// The machine's physical address of a host pointer into RAM, or kNotInRam.
  PhysicalAddress address_of(const void* host) const {
    const auto* p = static_cast<const std::uint8_t*>(host);
    if (p < ram_ || p >= ram_ + bytes_) return kNotInRam;
    const auto offset = static_cast<std::uint64_t>(p - ram_);
    return offset < low_bytes_ ? offset : offset - low_bytes_ + k4GiB;
  }
  static constexpr std::uint64_t kNotInRam = ~std::uint64_t{0};

  const std::uint8_t* live(PhysicalAddress address) const { return ram_ + offset_of(address); }
  std::uint8_t* shadow(PhysicalAddress address) { return shadow_ + offset_of(address); }
  const std::uint8_t* shadow(PhysicalAddress address) const { return shadow_ + offset_of(address); }
  bool differs(PhysicalAddress address, std::uint32_t size) const {
    const std::size_t offset = offset_of(address);
    return std::memcmp(ram_ + offset, shadow_ + offset, size) != 0;
  }
  /// Whether an aligned dword differs as an entry of page tables does that the emulator's walker
  /// has marked as accessed or dirty. The bus shows such a mark with the walk that makes it.
  bool is_marked(PhysicalAddress address) const {
    std::uint32_t now = 0;
    std::memcpy(&now, live(address), sizeof now);
    return is_mark(address, now);
  }
  /// The same where the dword is going to be `now`.
  bool is_mark(PhysicalAddress address, std::uint32_t now) const {
    std::uint32_t before = 0;
    std::memcpy(&before, shadow(address), sizeof before);
    constexpr std::uint32_t kPresent = 1, kMarks = 0x60;
    return now != before && (before & kPresent) != 0 && (now & ~kMarks) == (before & ~kMarks) &&
           (before & ~now) == 0;
  }
  void take(PhysicalAddress address, std::uint32_t size) {
    const std::size_t offset = offset_of(address);
    std::memcpy(shadow_ + offset, ram_ + offset, size);
  }
  /// From now on RAM stays as the emulator has it: the machine repeats a run, and must not notice
  /// that it is looked at. What the emulator stores differently from a processor is then shown as
  /// another bus master's doing, when the guest reads it.
  void only_observe() { observes_ = true; }
  bool observes() const { return observes_; }
  /// Makes RAM hold what a processor would have stored where the emulator stored something else, so
  /// that the machine goes on with what its bus has shown. Only from the processor's own thread.
  void correct(PhysicalAddress address, std::span<const std::uint8_t> bytes,
               Notice notice = Notice::taken) {
    if (observes_)
      leave(address, bytes, notice);
    else
      put(address, bytes);
  }
  /// The same for bytes that a processor would not have stored to.
  void restore(PhysicalAddress address, std::uint32_t size) {
    if (observes_)
      leave(address, {shadow(address), size}, Notice::taken);
    else
      take_back(address, size);
  }
  /// RAM keeps what the emulator has stored, and needs; the bus shows `bytes`.
  void keep(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
    leave(address, bytes, Notice::taken);
  }
  /// Whether RAM holds what the emulator itself has stored differently from the bus has shown, in a
  /// repeated run, or because it was kept. Software that reads it must be shown what is there.
  bool is_left(PhysicalAddress address) const {
    return !left_.empty() && left_at(address) != nullptr;
  }
  /// In a repeated run, changes `bytes`, which the processor itself reads at `address`, into those
  /// that it has left there. Returns which difference the guest would notice: none (`taken`) where
  /// they are the same.
  Notice as_processor_left(PhysicalAddress address, std::span<std::uint8_t> bytes) const;
  bool has_left() const { return !left_.empty(); }

  // What the processor has used a page for, the last one in a way that is never cached. Needs
  // find() to have succeeded.
  enum Use : std::uint8_t { kCode = 1, kTable = 2, kSavedState = 4 };
  void note_use(PhysicalAddress address, Use use) {
    if (is_ram(address, 1)) uses_[offset_of(address) / kPageBytes] |= use;
  }
  /// The address of a byte in RAM, as live() gives it.
  std::uint8_t uses_of(const std::uint8_t* live) const {
    return uses_[static_cast<std::size_t>(live - ram_) / kPageBytes];
  }
  /// Of RAM.
  bool may_be_cached(PhysicalAddress address) const {
    return (uses_[offset_of(address) / kPageBytes] & kSavedState) == 0;
  }
  /// The processor has stored there.
  void note_store(const std::uint8_t* live) { table_stores_ += (uses_of(live) & kTable) != 0; }
  /// Stores to pages that hold tables of pages.
  std::uint32_t table_stores() const { return table_stores_; }
  // RAM for a moment, in which the machine does not run.
  void put(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
    std::memcpy(ram_ + offset_of(address), bytes.data(), bytes.size());
  }
  void take_back(PhysicalAddress address, std::uint32_t size) {
    const std::size_t offset = offset_of(address);
    std::memcpy(ram_ + offset, shadow_ + offset, size);
  }

 private:
  /// A byte that the emulator has stored.
  struct Left {
    std::uint8_t value = 0;
    Notice notice = Notice::taken;
  };
  void leave(PhysicalAddress address, std::span<const std::uint8_t> bytes, Notice notice);
  const Left* left_at(PhysicalAddress address) const;
  bool is_high_ram(PhysicalAddress address, std::uint32_t size) const {
    const std::uint64_t high_bytes = bytes_ - low_bytes_;
    return address >= k4GiB && address - k4GiB < high_bytes &&
           size <= high_bytes - (address - k4GiB);
  }
  /// Where in RAM an address is; of RAM alone.
  std::size_t offset_of(PhysicalAddress address) const {
    return address < low_bytes_ ? address : address - k4GiB + low_bytes_;
  }

  static constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kHoleBegin = 0xa0000, kHoleEnd = 0x100000;
  // After the screen's memory there are ROMs up to 1 MiB. The processor starts at the end of 4
  // GiB.
  static constexpr std::uint32_t kFirmwareBegin = 0xc0000, kResetFirmwareBegin = 0xfff00000;

  std::uint8_t* ram_ = nullptr;
  std::uint8_t* shadow_ = nullptr;
  std::uint64_t bytes_ = 0, low_bytes_ = 0;
  PhysicalAccess access_ = nullptr;
  bool observes_ = false;
  bool shows_smram_ = false;
  std::vector<std::uint8_t> uses_;  ///< of each page of RAM: a bit for each Use
  std::uint32_t table_stores_ = 0;
  /// By address. Some are no longer true, because somebody else has stored there.
  std::unordered_map<PhysicalAddress, Left> left_;
};

}  // namespace citcat::monitor
