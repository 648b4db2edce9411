#include "replay/verify/block_memory.h"

#include <algorithm>

namespace citcat {

BlockMemory::Byte BlockMemory::byte_before(std::uint32_t instruction, PhysAddr a) const {
  const std::span<const BlockStore> stores =
      may_be_stored(a, 1) ? block_.stores : std::span<const BlockStore>{};
  for (const BlockStore& store : stores) {
    const std::uint32_t offset = a.minus32(store.address);
    if (offset >= store.size || store.instruction < instruction) continue;
    if ((store.was_defined >> offset & 1) == 0) return {Byte::State::undefined, 0};
    return {Byte::State::known, store.before[offset]};
  }
  const auto now = memory_.defined_byte(a);
  return now ? Byte{Byte::State::known, *now} : Byte{};
}

bool BlockMemory::holds(PhysAddr first, std::span<const std::uint8_t> bytes,
                        std::uint32_t known) const {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  const std::uint32_t all = size >= 32 ? 0xffffffff : (1u << size) - 1;
  if (known != all || first.offset_in_page() + size > kPageSize) return false;
  const bool stored =
      may_be_stored(first, size) &&
      std::any_of(block_.stores.begin(), block_.stores.end(), [&](const BlockStore& store) {
        return overlap(store.address, store.size, first, size);
      });
  return !stored && memory_.holds(first, bytes);
}

bool BlockMemory::stores_within(std::uint32_t instruction, PhysAddr first,
                                std::uint32_t size) const {
  if (!may_be_stored(first, size)) return false;
  const auto stores = JudgedBlock::of_instruction(block_.stores, instruction);
  return std::any_of(stores.begin(), stores.end(), [&](const BlockStore& store) {
    return overlap(store.address, store.size, first, size);
  });
}

bool BlockMemory::reads_within(std::uint32_t instruction, PhysAddr first,
                               std::uint32_t size) const {
  const auto reads = JudgedBlock::of_instruction(block_.reads, instruction);
  return std::any_of(reads.begin(), reads.end(), [&](const BlockRead& read) {
    return overlap(read.address, read.size, first, size);
  });
}

}  // namespace citcat
