#include "replay/block_memory.h"

#include <algorithm>
#include <cstring>

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

bool BlockMemory::holds(PhysAddr first, std::span<const std::uint8_t> bytes,
                        std::uint32_t known) const {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  const std::uint32_t all = size >= 32 ? 0xffffffff : (1u << size) - 1;
  if (known != all || first.offset_in_page() + size > kPageSize) return false;
  const bool stored = std::any_of(
      block_.stores.begin(), block_.stores.end(),
      [&](const BlockStore& store) { return overlap(store.address, store.size, first, size); });
  if (stored || !memory_.is_mapped(first.page())) return false;
  return memory_.is_defined(first, size) &&
         std::memcmp(memory_.host(first), bytes.data(), size) == 0;
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

PhysAddr BlockMemory::fetched(std::uint32_t instruction) const {
  return block_.code->physical(block_.code->instructions[instruction].offset);
}

bool BlockMemory::fetches_within(std::uint32_t instruction, PhysAddr first,
                                 std::uint32_t size) const {
  const BlockTemplate::Instruction& in = block_.code->instructions[instruction];
  const PhysAddr begin = block_.code->physical(in.offset);
  const std::uint32_t here =
      std::min(std::uint32_t{in.info.length}, kPageSize - begin.offset_in_page());
  if (overlap(begin, here, first, size)) return true;
  return here < in.info.length &&
         overlap(block_.code->physical(in.offset + here), in.info.length - here, first, size);
}

}  // namespace citcat
