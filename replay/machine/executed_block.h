#pragma once
// A block as observers and the judge of a run see it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "events/machine/address.h"
#include "replay/machine/block_code.h"
#include "replay/machine/block_notes.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Several instructions that completed one after another. Valid during the call.
class ExecutedBlock {
 public:
  /// `addresses`: of the first operands of all instructions, ExecutedInstruction::ea_count of each,
  /// in their order. All must outlive the object.
  ExecutedBlock(const BlockCode& code, const LinearAddr* addresses,
                std::span<const DataReference> references = {})
      : code_(&code), addresses_(addresses), references_(references) {}

  std::uint32_t count() const { return code_->count(); }
  const DecodedInstruction& decoded(std::uint32_t i) const { return code_->instruction(i).info; }
  /// The address of the first byte of instruction `i`.
  LinearAddr linear(std::uint32_t i) const { return code_->linear_at(code_->begin_of(i)); }
  /// Its offset in CS: segments of 64-bit mode begin at 0.
  std::uint64_t offset(std::uint32_t i) const {
    const LinearAddr at = linear(i);
    return code_->bits64() ? at.value : at.low32() - code_->code_base();
  }
  PhysAddr physical(std::uint32_t i) const { return code_->physical(code_->begin_of(i)); }
  /// Linear addresses, as the constructor says.
  const LinearAddr* addresses() const { return addresses_; }
  const BlockCode& code() const { return *code_; }
  /// With Detail::references: what it read and stored, in program order.
  std::span<const DataReference> references() const { return references_; }
  /// Instruction `i` as if it had been reported alone.
  ExecutedInstruction instruction(std::uint32_t i) const;
  /// A slot in which the observer may keep something with the block from one execution to the next.
  /// No other observer sees it, and it goes when the block does. Null where the block will not run
  /// again.
  std::unique_ptr<BlockNote>* note() const { return note_; }
  /// From here on that slot is the one of the observer with this number; before it is null.
  void use_notes_of(std::size_t observer) {
    note_ = code_->comes_again() ? &code_->notes().of(observer) : nullptr;
  }

 private:
  const BlockCode* code_;
  const LinearAddr* addresses_;
  std::unique_ptr<BlockNote>* note_ = nullptr;
  std::span<const DataReference> references_;
};

/// A store of a block, within one page frame.
struct BlockStore {
  PhysAddr address;
  std::uint32_t size = 0;
  std::uint32_t instruction = 0;  ///< number in the block
  std::uint8_t was_defined = 0;   ///< bit i: byte i was, before it
  /// The bytes that were stored, and those that were there before: `size` of each.
  std::array<std::uint8_t, 8> value{}, before{};
  std::span<const std::uint8_t> bytes() const { return {value.data(), size}; }
};

/// What a block read, within one page frame.
struct BlockRead {
  PhysAddr address;
  std::uint32_t size = 0;
  std::uint32_t instruction = 0;  ///< number in the block
};

/// One of several blocks that ran one after another. It has the few facts of its code that a judge
/// asks for, because a block that is compared has mostly left the host's caches.
struct JudgedPart {
  const std::uint16_t* begins = nullptr;  ///< offset of each instruction, and of the end
  std::uint32_t first = 0;                ///< instructions before it
  std::uint32_t count = 0;
  LinearAddr linear;      ///< of its first byte
  PhysAddr frame;         ///< of its page
  PhysAddr second_frame;  ///< of the page that it reaches into
  bool bits64 = false;    ///< code of 64-bit mode

  LinearAddr linear_at(std::uint32_t offset) const {
    return bits64 ? LinearAddr{linear.value + offset} : linear.plus32(offset);
  }
  PhysAddr physical(std::uint32_t offset) const {
    const std::uint32_t in_frame = linear.offset_in_page() + offset;
    return in_frame < kPageSize ? frame.plus32(in_frame)
                                : second_frame.plus32(in_frame & kPageMask);
  }
};

/// What is judged as one: a block, or several that ran one after another, and what they read and
/// stored at physical addresses, in program order. Instructions have consecutive numbers.
struct JudgedBlock {
  std::span<const JudgedPart> parts;  ///< at least one
  std::span<const BlockStore> stores;
  std::span<const BlockRead> reads;

  std::uint32_t count() const { return parts.back().first + parts.back().count; }
  /// Bytes of instruction `i`, where it begins, and the place of its byte number `byte`.
  std::uint32_t length(std::uint32_t i) const {
    const JudgedPart& part = part_of(i);
    return static_cast<std::uint32_t>(part.begins[i - part.first + 1] -
                                      part.begins[i - part.first]);
  }
  LinearAddr linear(std::uint32_t i) const {
    const JudgedPart& part = part_of(i);
    return part.linear_at(part.begins[i - part.first]);
  }
  PhysAddr physical(std::uint32_t i, std::uint32_t byte = 0) const {
    const JudgedPart& part = part_of(i);
    return part.physical(part.begins[i - part.first] + byte);
  }
  /// Those of `accesses`, its reads or stores, that instruction `i` made.
  template <class T>
  static std::span<const T> of_instruction(std::span<const T> accesses, std::uint32_t i) {
    const auto begin = std::partition_point(accesses.begin(), accesses.end(),
                                            [&](const T& a) { return a.instruction < i; });
    const auto end =
        std::find_if(begin, accesses.end(), [&](const T& a) { return a.instruction != i; });
    return {begin, end};
  }

 private:
  const JudgedPart& part_of(std::uint32_t i) const {
    const auto behind = std::partition_point(parts.begin() + 1, parts.end(),
                                             [&](const JudgedPart& p) { return p.first <= i; });
    return behind[-1];
  }
};

}  // namespace citcat
