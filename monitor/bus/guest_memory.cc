#include "monitor/bus/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

namespace citcat::monitor {
namespace {

constexpr std::uint64_t kStretch = std::uint64_t{64} << 20;

}  // namespace

bool GuestMemory::find(const std::string& backend_name) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char line[1024];
  int found = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (std::strstr(line, backend_name.c_str()) == nullptr ||
        std::sscanf(line, "%lx-%lx", &begin, &end) != 2)
      continue;
    ++found;
    ram_ = reinterpret_cast<std::uint8_t*>(begin);
    low_bytes_ = bytes_ = end - begin;
  }
  std::fclose(maps);
  uses_.assign(bytes_ / kPageBytes + 1, 0);
  return found == 1;
}

bool GuestMemory::find_high(Map map, Unmap unmap) {
  // Up to there nothing is beyond 4 GiB, unless somebody asks for it (QEMU, hw/i386/pc_q35.c).
  constexpr std::uint64_t kMostlyLow = std::uint64_t{2} << 30;
  if (map == nullptr || unmap == nullptr) return bytes_ <= kMostlyLow;
  std::uint64_t size = kPageBytes;
  void* const host = map(k4GiB, &size, false);
  if (host == nullptr) return true;
  const auto* const p = static_cast<const std::uint8_t*>(host);
  if (p >= ram_ && p < ram_ + bytes_) low_bytes_ = static_cast<std::uint64_t>(p - ram_);
  unmap(host, size, false, 0);
  return true;
}

void GuestMemory::leave(PhysicalAddress address, std::span<const std::uint8_t> bytes,
                        Notice notice) {
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const PhysicalAddress at = address + n;
    if (const std::uint8_t value = *live(at); value != bytes[n])
      left_[at] = {value, notice};
    else
      left_.erase(at);
  }
}

const GuestMemory::Left* GuestMemory::left_at(PhysicalAddress address) const {
  const auto found = left_.find(address);
  if (found == left_.end()) return nullptr;
  const std::uint8_t now = *live(address);
  return now == found->second.value && now != *shadow(address) ? &found->second : nullptr;
}

Notice GuestMemory::as_processor_left(PhysicalAddress address,
                                      std::span<std::uint8_t> bytes) const {
  Notice notice = Notice::taken;
  for (std::size_t n = 0; n < bytes.size() && has_left(); ++n) {
    const PhysicalAddress at = address + n;
    const Left* const left = left_at(at);
    if (left == nullptr || left->notice == Notice::taken || left->value != bytes[n]) continue;
    bytes[n] = *shadow(at);
    notice = left->notice;
  }
  return notice;
}

bool GuestMemory::snapshot() {
  if (shadow_ == nullptr) {
    void* const p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    shadow_ = static_cast<std::uint8_t*>(p);
  }
  // What the machine never used is not copied: to read it would take memory for it.
  std::vector<unsigned char> used(kStretch / kPageBytes);
  for (std::uint64_t at = 0; at < bytes_; at += kStretch) {
    const std::uint64_t size = std::min(kStretch, bytes_ - at);
    const std::size_t pages = size / kPageBytes;
    if (mincore(ram_ + at, size, used.data()) != 0) used.assign(used.size(), 1);
    for (std::size_t n = 0; n < pages; ++n)
      if ((used[n] & 1) != 0)
        std::memcpy(shadow_ + at + n * kPageBytes, ram_ + at + n * kPageBytes, kPageBytes);
  }
  return true;
}

}  // namespace citcat::monitor
