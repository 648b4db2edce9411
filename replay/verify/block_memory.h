#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "replay/machine/executed_block.h"
#include "replay/machine/memory.h"

namespace citcat {

/// Memory as it was between two instructions of a block that has run, reconstructed by undoing the
/// later stores.
class BlockMemory {
 public:
  /// `memory` as it is after the block. Both must outlive the object.
  BlockMemory(const JudgedBlock& block, const Memory& memory) : block_(block), memory_(memory) {
    for (const BlockStore& store : block.stores) {
      stored_ |= bit_of(store.address) | bit_of(store.address.plus32(store.size - 1));
    }
  }

  const Memory& memory() const { return memory_; }
  struct Byte {
    enum class State : std::uint8_t { known, undefined } state = State::undefined;
    std::uint8_t value = 0;  ///< where it is known
  };
  /// The byte before instruction number `instruction` of the block (its count: at its end).
  Byte byte_before(std::uint32_t instruction, PhysAddr a) const;
  /// Whether no instruction of the block stores to the range and memory holds `bytes` there, of
  /// which `known` has a bit each. Also false where more than one comparison would be needed.
  bool holds(PhysAddr first, std::span<const std::uint8_t> bytes, std::uint32_t known) const;
  /// Instruction number `instruction` stores to the range, or reads from it.
  bool stores_within(std::uint32_t instruction, PhysAddr first, std::uint32_t size) const;
  bool reads_within(std::uint32_t instruction, PhysAddr first, std::uint32_t size) const;
  /// Where its code begins, and whether some of it lies in the range.
  PhysAddr fetched(std::uint32_t instruction) const { return block_.physical(instruction); }
  bool fetches_within(std::uint32_t instruction, PhysAddr first, std::uint32_t size) const {
    return !all_of_code(instruction, [&](PhysAddr a, std::uint32_t bytes) {
      return !overlap(a, bytes, first, size);
    });
  }
  /// Whether `holds` says so of its code: once for each page that it lies in.
  template <class F>
  bool all_of_code(std::uint32_t instruction, F&& holds) const {
    const std::uint32_t length = block_.length(instruction);
    const PhysAddr begin = block_.physical(instruction);
    const std::uint32_t here = std::min(length, kPageSize - begin.offset_in_page());
    return holds(begin, here) &&
           (here == length || holds(block_.physical(instruction, here), length - here));
  }

 private:
  /// 16 bytes of memory have one bit of 64, and share it with others.
  static constexpr std::uint32_t kGrain = 16;
  static std::uint64_t bit_of(PhysAddr a) { return std::uint64_t{1} << (a.value / kGrain & 63); }
  bool may_be_stored(PhysAddr first, std::uint32_t size) const {
    std::uint64_t bits = bit_of(first.plus32(size - 1));
    for (std::uint32_t at = 0; at < size; at += kGrain) bits |= bit_of(first.plus32(at));
    return (stored_ & bits) != 0;
  }

  const JudgedBlock& block_;
  const Memory& memory_;
  std::uint64_t stored_ = 0;  ///< bits of what the block stores to
};

}  // namespace citcat
