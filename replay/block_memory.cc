#include "replay/block_memory.h"

#include <algorithm>

namespace citcat {
namespace {

bool overlap(PhysAddr a, std::uint32_t size, PhysAddr b, std::uint32_t other) {
  return a.value - b.value < other || b.value - a.value < size;
}

}  // namespace

std::optional<std::uint8_t> BlockMemory::byte_before(std::uint32_t instruction, PhysAddr a) const {
  std::optional<std::uint8_t> overwritten;
  bool stored = false;
  for (const BlockStore& store : block_.stores) {
    const std::uint32_t offset = a.value - store.address.value;
    if (offset >= store.size) continue;
    if (block_.code->stores[store.number].instruction < instruction) {
      stored = true;
    } else if (!overwritten) {
      overwritten = store.before[offset];
    }
  }
  if (!stored && !memory_.defined_byte(a)) return std::nullopt;
  return overwritten ? *overwritten : *memory_.host(a);
}

bool BlockMemory::stores_within(std::uint32_t instruction, PhysAddr first,
                                std::uint32_t size) const {
  return std::any_of(block_.stores.begin(), block_.stores.end(), [&](const BlockStore& store) {
    return block_.code->stores[store.number].instruction == instruction &&
           overlap(store.address, store.size, first, size);
  });
}

bool BlockMemory::reads_within(std::uint32_t instruction, PhysAddr first,
                               std::uint32_t size) const {
  return std::any_of(block_.reads.begin(), block_.reads.end(), [&](const BlockRead& read) {
    return read.instruction == instruction && overlap(read.address, read.size, first, size);
  });
}

std::pair<PhysAddr, std::uint32_t> BlockMemory::fetched(std::uint32_t instruction) const {
  const ExecutedInstruction e = block_.instruction(instruction);
  return {e.physical, e.info->length};
}

}  // namespace citcat
