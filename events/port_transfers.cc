#include "events/port_transfers.h"

#include <algorithm>

#include "events/machine/cpu_traits.h"

namespace citcat {

PortBus::PortBus(const BusModel& bus, CpuModel model)
    : upper_first_(cpu_traits(model).port_bytes == 4) {
  const CpuTraits& traits = cpu_traits(model);
  const std::uint32_t most = traits.port_bytes;
  const bool undeclared = bus.bus_bytes > most && most < 4;
  widest_ = std::clamp<std::uint32_t>(bus.bus_bytes, 1, most);
  narrowest_ = undeclared || traits.sizes_bus ? 1 : widest_;
}

bool PortBus::may_transfer(std::uint32_t port, std::uint32_t size, std::uint32_t left) const {
  for (std::uint32_t width = widest_; width >= narrowest_; width /= 2) {
    if (size == std::min(left, width - port % width)) return true;
  }
  return false;
}

bool PortAccess::is_at(PhysAddr address, std::uint32_t offset) const {
  const std::uint32_t at = port_ + offset;
  return address.value == at || address.value == (at & 0xffff);
}

/// Where an access begins that is not whole.
std::optional<std::uint32_t> PortAccess::begin(PhysAddr address) const {
  if (address.value == port_) return 0;
  const std::uint32_t below = bytes_below_dword(port_, size_);
  if (bus_.upper_first() && below != 0 && is_at(address, below)) return below;
  return std::nullopt;
}

std::optional<std::uint32_t> PortAccess::take(PhysAddr address, std::uint32_t size) {
  if (complete()) return std::nullopt;
  if (!begun()) {
    if (address.value == port_ && size == size_) {
      taken_ = size;
      return 0;
    }
    const auto offset = begin(address);
    if (!offset) return std::nullopt;
    first_ = next_ = *offset;
  }
  const std::uint32_t end = next_ < first_ ? first_ : size_;
  const bool fits = is_at(address, next_) && bus_.may_transfer(port_ + next_, size, end - next_);
  if (!fits) return std::nullopt;
  const std::uint32_t offset = next_;
  taken_ += size;
  next_ = next_ + size == size_ ? 0 : next_ + size;
  return offset;
}

PortCount::PortCount(const Recording& recording)
    : unit_(recording.port_unit), bus_(recording.bus, recording.initial.model) {
  if (unit_ == PortUnit::bytes) return;
  whole_ = std::any_of(recording.io_reads.begin(), recording.io_reads.end(),
                       [&](const IoRead& read) { return read.size > bus_.room(read.port); });
}

std::uint64_t PortCount::of(std::uint16_t port, std::uint32_t size) const {
  if (unit_ == PortUnit::bytes) return size;
  if (whole_) return 1;
  std::uint64_t transfers = 0;
  for (std::uint32_t at = port; at < port + size; at += bus_.room(at)) ++transfers;
  return transfers;
}

}  // namespace citcat
