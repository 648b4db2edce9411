#pragma once
// How the area of a block is laid out: what is known beforehand, and where addresses go.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "replay/machine/fast/lowering.h"

namespace citcat::fast {

/// The layout of one block's area, instruction by instruction. With Keep::kt_records the area holds
/// KT records (docs/formats/kt.md), which outside 64-bit mode have addresses of 4 bytes; otherwise,
/// where it holds anything, the effective addresses of one instruction after another, of 8 bytes.
class AreaLayout {
 public:
  static constexpr std::size_t kMaxInstructions = 64;

  /// Begins the layout of a new block.
  void begin(Policy policy, bool bits64) {
    bits64_ = bits64;
    records_ = policy.keep == Keep::kt_records;
    addresses_ = !records_ && notes_for(policy.keep) != AccessNotes::none;
    size_ = 0;
  }

  /// Tells the operation where to put its addresses. kMaxInstructions at most are added.
  void add(const DecodedInstruction& info, LinearAddr linear, Lowered& lowered) {
    if (!records_ && !addresses_) return;
    if (records_) add_record(info, linear);
    const std::size_t first = size_;
    for (unsigned i = 0; records_ && i < info.ea_count; ++i) {
      put((lowered.known >> i & 1) != 0 ? lowered.address[i] : LinearAddr{});
    }
    if (!records_) size_ += info.ea_count * address_bytes();
    Op& op = lowered.op;
    op.slot = static_cast<std::uint16_t>(first + op.slot * address_bytes());
    if (lowered.pushes_memory) op.immediate = address_bytes();
  }
  std::size_t size() const { return size_; }
  /// The image of records, rounded up to the size of a copy. Handlers store all addresses
  /// themselves, so that they have no image. Valid until the next call of a member.
  std::span<const std::uint8_t> image() {
    if (!records_) return {};
    const std::size_t rounded = (size_ + kAreaStep - 1) / kAreaStep * kAreaStep;
    std::memset(&bytes_[size_], 0, rounded - size_);
    return {bytes_.data(), rounded};
  }

 private:
  /// Head, code and padding of a record, and two addresses: in 64-bit mode, of which records are
  /// longer.
  static constexpr std::size_t kMaxRecord = ((9 + kMaxInstructionBytes + 7) & ~7) + 2 * 8;

  void put(LinearAddr address) {
    std::memcpy(&bytes_[size_], &address.value, address_bytes());
    size_ += address_bytes();
  }
  std::size_t address_bytes() const { return records_ && !bits64_ ? 4 : 8; }
  void add_record(const DecodedInstruction& info, LinearAddr linear) {
    put(linear);
    const std::size_t unit = address_bytes();
    const std::size_t rest = (1 + info.length + unit - 1) / unit * unit;
    bytes_[size_] = static_cast<std::uint8_t>(info.ea_count << 4 | info.length);
    std::memset(&bytes_[size_ + 1], 0, rest - 1);
    std::memcpy(&bytes_[size_ + 1], info.bytes.data(), info.length);
    size_ += rest;
  }

  bool records_ = false, addresses_ = false, bits64_ = false;
  std::size_t size_ = 0;
  std::array<std::uint8_t, kMaxInstructions * kMaxRecord + kAreaStep> bytes_;
};

/// Bytes of the areas of a batch of blocks, with the addresses of at most 192 instructions; or of
/// those of the last blocks that passed, of which the ones that hold Interest::kMostTrail
/// instructions need less.
inline constexpr std::size_t kAreaBytes = 4096;
/// What an area that begins there, and a copy of it, may go beyond them.
inline constexpr std::size_t kAreaBeyond = AreaLayout::kMaxInstructions * 16 + 2 * kAreaStep;

}  // namespace citcat::fast
