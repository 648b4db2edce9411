#pragma once
// The code of a block: instructions that lie one after another, as decoded, and where they lie.

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "replay/machine/block_notes.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// Instructions are added in their order; then it stays as it is except for the observers' notes.
class BlockCode {
 public:
  struct Instruction {
    DecodedInstruction info;
    std::uint32_t offset = 0;            ///< from the block's first byte
    std::uint32_t addresses_before = 0;  ///< effective addresses of the instructions before it
  };

  BlockCode() = default;
  /// `linear`: of its first byte, which lies in `frame`; `code_base`: of CS.
  BlockCode(LinearAddr linear, std::uint32_t code_base, PhysAddr frame)
      : linear_(linear), code_base_(code_base), frame_(frame) {}
  /// The same again, in the memory that it already has.
  void begin_again(LinearAddr linear, std::uint32_t code_base, PhysAddr frame) {
    linear_ = linear;
    code_base_ = code_base;
    frame_ = frame;
    second_frame_ = {};
    instructions_.clear();
    begins_.resize(1);
  }
  /// Where the bytes after its first page lie.
  void set_second_frame(PhysAddr frame) { second_frame_ = frame; }
  void add(const DecodedInstruction& info) {
    const std::uint32_t addresses = instructions_.empty() ? 0
                                                          : instructions_.back().addresses_before +
                                                                instructions_.back().info.ea_count;
    instructions_.push_back({info, begins_.back(), addresses});
    begins_.push_back(static_cast<std::uint16_t>(begins_.back() + info.length));
  }
  /// A block of its first `count` instructions, which will not run again as such.
  BlockCode first(std::uint32_t count) const;

  std::uint32_t count() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  const Instruction& instruction(std::uint32_t i) const { return instructions_[i]; }
  LinearAddr linear() const { return linear_; }
  /// The address of the byte `offset` bytes into the block.
  LinearAddr linear_at(std::uint32_t offset) const {
    return bits64() ? LinearAddr{linear_.value + offset} : linear_.plus32(offset);
  }
  /// It is code of 64-bit mode, and has such addresses.
  bool bits64() const { return !instructions_.empty() && instructions_.front().info.bits64; }
  std::uint32_t code_base() const { return code_base_; }
  /// Offset of instruction `i`; of the block's end for count().
  std::uint32_t begin_of(std::uint32_t i) const { return begins_[i]; }
  /// The address of the byte `offset` bytes into the block.
  PhysAddr physical(std::uint32_t offset) const {
    const std::uint32_t in_frame = linear_.offset_in_page() + offset;
    return in_frame < kPageSize ? frame_.plus32(in_frame)
                                : second_frame_.plus32(in_frame & kPageMask);
  }
  bool comes_again() const { return comes_again_; }
  BlockNotes& notes() const { return notes_; }

 private:
  LinearAddr linear_;
  std::uint32_t code_base_ = 0;
  PhysAddr frame_, second_frame_;
  bool comes_again_ = true;
  std::vector<Instruction> instructions_;
  /// Offset of each of them and of the end: in a few lines of the host's cache.
  std::vector<std::uint16_t> begins_ = {0};
  mutable BlockNotes notes_;
};

}  // namespace citcat
