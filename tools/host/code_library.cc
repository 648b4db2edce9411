#include "tools/host/code_library.h"

#include <algorithm>

namespace citcat::tools {

namespace {

bool same(const StaticInstruction& a, const StaticInstruction& b) {
  return a.linear == b.linear && a.physical == b.physical && a.offset == b.offset &&
         a.physical_rest == b.physical_rest && a.info.length == b.info.length &&
         a.info.address_bits == b.info.address_bits && a.info.bits64 == b.info.bits64 &&
         a.info.operand_bytes == b.info.operand_bytes && a.info.real_or_v86 == b.info.real_or_v86 &&
         a.info.bytes == b.info.bytes;
}

bool same(const StaticBlock& block, const std::vector<StaticInstruction>& instructions) {
  return std::equal(block.instructions().begin(), block.instructions().end(), instructions.begin(),
                    instructions.end(), [](const auto& a, const auto& b) { return same(a, b); });
}

std::size_t hash_of(std::span<const StaticInstruction> instructions) {
  const StaticInstruction& first = instructions.front();
  std::uint64_t h = static_cast<std::uint64_t>(first.linear.value) * 0x9e3779b97f4a7c15;
  h ^= static_cast<std::uint64_t>(first.physical.value) * 0xc2b2ae3d27d4eb4f;
  h ^= instructions.size() * 0x165667b19e3779f9;
  return static_cast<std::size_t>(h >> 20 ^ h);
}

}  // namespace

void CodeLibrary::grow() {
  std::vector<KnownCode*> slots(slots_.size() * 2);
  for (KnownCode* piece : slots_) {
    if (piece == nullptr) continue;
    std::size_t i = hash_of(piece->block.instructions()) & (slots.size() - 1);
    while (slots[i] != nullptr) i = (i + 1) & (slots.size() - 1);
    slots[i] = piece;
  }
  slots_ = std::move(slots);
}

KnownCode& CodeLibrary::find(std::vector<StaticInstruction>& instructions) {
  std::size_t i = hash_of(instructions) & (slots_.size() - 1);
  for (; slots_[i] != nullptr; i = (i + 1) & (slots_.size() - 1)) {
    if (same(slots_[i]->block, instructions)) return *slots_[i];
  }
  KnownCode& piece = pieces_.emplace_back(StaticBlock(instructions));
  slots_[i] = &piece;
  if (pieces_.size() * 2 > slots_.size()) grow();
  return piece;
}

KnownCode& CodeLibrary::block(const BlockCode& code) {
  scratch_.clear();
  for (std::uint32_t i = 0; i < code.count(); ++i) {
    StaticInstruction& s = scratch_.emplace_back();
    const std::uint32_t begin = code.begin_of(i);
    s.info = code.instruction(i).info;
    s.linear = code.linear_at(begin);
    s.offset = code.bits64() ? s.linear.value : s.linear.low32() - code.code_base();
    s.physical = code.physical(begin);
    const std::uint32_t here = s.bytes_in_first_page();
    if (here < s.info.length) s.physical_rest = code.physical(begin + here);
    s.addresses_before = code.instruction(i).addresses_before;
  }
  return find(scratch_);
}

KnownCode& CodeLibrary::single(const ExecutedInstruction& e, PhysAddr rest) {
  scratch_.resize(1);
  StaticInstruction& s = scratch_.front();
  s.info = *e.info;
  s.linear = e.linear;
  s.offset = e.offset;
  s.physical = e.physical;
  s.physical_rest = s.bytes_in_first_page() < s.info.length ? rest : PhysAddr{};
  s.addresses_before = 0;
  return find(scratch_);
}

KnownCode& CodeLibrary::single(const StaticInstruction& instruction) {
  scratch_.assign(1, instruction);
  scratch_.front().addresses_before = 0;
  return find(scratch_);
}

}  // namespace citcat::tools
