#include "monitor/processor/linear_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace citcat::monitor {

std::uint64_t LinearMemory::read64(std::uint64_t linear) {
  const std::uint64_t low = read32(linear);
  return low | std::uint64_t{read32(linear + 4)} << 32;
}

std::uint32_t LinearMemory::read32(std::uint64_t linear) {
  const std::uint32_t low = read16(linear);
  return low | std::uint32_t{read16(linear + 2)} << 16;
}

std::uint16_t LinearMemory::read16(std::uint64_t linear) {
  if (left_in_page(linear) == 1)
    return static_cast<std::uint16_t>(read8(linear) | read8(linear + 1) << 8);
  std::uint16_t value = 0;
  const auto physical = cpu_.walker.translate(linear, false);
  std::array<std::uint8_t, 2> bytes{};
  if (physical && cpu_.memory.is_readable(*physical, 2)) cpu_.memory.read(*physical, bytes);
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::uint8_t LinearMemory::read8(std::uint64_t linear) {
  std::array<std::uint8_t, 1> byte{};
  const auto physical = cpu_.walker.translate(linear, false);
  if (physical && cpu_.memory.is_readable(*physical, 1)) cpu_.memory.read(*physical, byte);
  return byte[0];
}

bool LinearMemory::peek(std::uint64_t linear, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const std::size_t part = std::min<std::size_t>(bytes.size(), left_in_page(linear));
    const auto physical = cpu_.walker.locate(linear);
    if (!physical || !cpu_.memory.is_ram(*physical, static_cast<std::uint32_t>(part))) return false;
    cpu_.memory.read(*physical, bytes.first(part));
    linear += part;
    bytes = bytes.subspan(part);
  }
  return true;
}

bool LinearMemory::show(std::uint64_t linear, unsigned size, bool store) {
  while (size != 0) {
    const unsigned part = std::min(size, left_in_page(linear));
    const auto physical = cpu_.walker.translate(linear, store);
    std::array<std::uint8_t, 512> block;
    if (!physical || part > block.size() || !cpu_.memory.is_readable(*physical, part)) return false;
    const auto bytes = std::span(block).first(part);
    cpu_.memory.read(*physical, bytes);
    if (!store) cpu_.memory.as_processor_left(*physical, bytes);
    if (store)
      cpu_.bus.write(*physical, bytes);
    else
      cpu_.bus.read(*physical, bytes);
    linear += part;
    size -= part;
  }
  return true;
}

void LinearMemory::expect_stores(std::uint64_t linear, unsigned size) {
  const unsigned in_page = std::min(size, left_in_page(linear));
  const auto range = [this](std::uint64_t at, std::uint32_t bytes) {
    const auto physical = cpu_.walker.locate(at);
    return physical ? BusModel::Range{*physical, bytes} : BusModel::Range{};
  };
  cpu_.bus.expect_writes(range(linear, in_page), range(linear + in_page, size - in_page));
}

void LinearMemory::store(std::uint64_t linear, std::span<const std::uint8_t> bytes,
                         std::optional<Notice> corrects) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), left_in_page(linear)));
    const auto physical = cpu_.walker.translate(linear, true);
    if (!physical) return;
    if (corrects) correct_part(*physical, part, *corrects);
    cpu_.bus.write(*physical, part);
    linear += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void LinearMemory::store_blocks(std::uint64_t linear, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min<std::size_t>(bytes.size(), kSlotBytes));
    const auto physical = cpu_.walker.translate(linear, true);
    if (!physical) return;
    cpu_.memory.correct(*physical, block);
    cpu_.bus.write(*physical, block);
    linear += block.size();
    bytes = bytes.subspan(block.size());
  }
}

void LinearMemory::correct(std::uint64_t linear, std::span<const std::uint8_t> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n)
    if (const auto at = cpu_.walker.locate(linear + n))
      correct_part(*at, bytes.subspan(n, 1), Notice::taken);
}

/// Corrects bytes of one page; other memory stays as the emulator has it.
void LinearMemory::correct_part(PhysicalAddress physical, std::span<const std::uint8_t> bytes,
                                Notice notice) {
  if (cpu_.memory.is_ram(physical, static_cast<std::uint32_t>(bytes.size())))
    cpu_.memory.correct(physical, bytes, notice);
}

}  // namespace citcat::monitor
