#pragma once
// The blocks of the fast tier: found by address, dropped when their code is stored to.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/byte_mask.h"
#include "formats/memory/frame_table.h"
#include "replay/machine/block_code.h"
#include "replay/machine/fast/area_layout.h"
#include "replay/machine/fast/lowering.h"
#include "replay/machine/memory.h"
#include "x86/decode_cache.h"
#include "x86/host_vectors.h"

namespace citcat::fast {

/// Where code lies, page by page.
struct CodePlace {
  std::uint64_t eip = 0;
  LinearAddr linear;
  PhysAddr frame;           ///< of its page
  PhysAddr second_frame;    ///< of the page after it
  bool has_second = false;  ///< which may be executed
};

/// Makes and keeps blocks. What it hands out stays valid until clear(); a dropped block stays in
/// memory, but no longer has an `eip` (Block::kNoEip).
class BlockStore {
 public:
  BlockStore(CpuModel model, Memory& memory);

  /// The block at `place`, made if there is none. One of no instructions (count 0) has only a tail.
  /// Null where the first instruction is not there as a whole, or not defined.
  Block* find(const CodePlace& place, const CodeShape& shape, Policy policy);
  /// The first `count` instructions of `block`. Valid until the next call.
  const Block& cut(const Block& block, std::uint32_t count, Policy policy);
  bool is_cut(const Block& block) const { return &block == &cut_; }
  /// What its first `count` instructions do to the flags, with the counts of shifts by CL. Of one
  /// that has Block::code.
  FlagEffect flags_of(const Block& block, std::uint32_t count,
                      std::span<const std::uint8_t> counts);
  /// What memory holds after the last instruction of a block. Valid until the next call.
  const DecodedInstruction& decode_tail(const Block& block);

  /// Bytes of memory have changed. True when blocks were dropped.
  bool stored(PhysAddr at, std::uint32_t size);
  /// Some block has code in the frame.
  bool holds_code(FrameNumber frame) const {
    return frames_[frame] != nullptr && !frames_[frame]->blocks.empty();
  }
  /// A frame without blocks may have got one since this was asked last.
  bool take_new_code() { return std::exchange(new_code_, false); }

  /// Memory is used up: clear() at the next occasion.
  bool full() const { return used_ > max_bytes_; }
  /// Sets the limit of all stores from now on; for tests. Not while another thread runs one.
  static void set_max_bytes(std::size_t bytes) { max_bytes_ = bytes; }
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  void clear();

  std::uint64_t decoded() const { return decoder_.decoded(); }
  std::uint64_t made() const { return made_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::uint32_t kMaxInstructions = AreaLayout::kMaxInstructions;

  struct FrameCode {
    ByteMask covered;
    std::vector<Block*> blocks;
  };
  /// A block with where it begins: those of others at hand are not looked at.
  struct Slot {
    LinearAddr linear;
    PhysAddr frame;
    Block* block = nullptr;
  };
  /// Blocks of one policy and shape.
  struct Set {
    CodeShape shape;
    Policy policy;
    std::vector<Slot> slots = std::vector<Slot>(std::size_t{1} << 12);  ///< by slot_of()
    std::size_t used = 0;
  };
  class Maker;
  /// What a block in the making has by now; not cleared before the next one.
  struct Draft {
    std::array<Op, kMaxInstructions> ops;
    std::array<std::uint16_t, kMaxInstructions + 1> begins, areas;
    std::array<std::uint8_t, kMaxInstructionBytes> bytes;
    AreaLayout layout;
    BlockCode code;
  };

  Set& set_of(const CodeShape& shape, Policy policy);
  static Slot& slot_of(std::vector<Slot>& slots, LinearAddr linear, PhysAddr frame);
  static void grow(Set& set);
  Block* make(const CodePlace& place, Set& set);
  void cover(Block& block, PhysAddr at, std::uint32_t size);
  std::uint64_t short_number(PhysAddr frame);
  template <class T>
  T* allocate(std::size_t count) {
    used_ += count * sizeof(T);
    return static_cast<T*>(arena_.allocate(count * sizeof(T), alignof(T)));
  }

  const CpuTraits& traits_;
  Memory& memory_;
  DecodeCache decoder_;
  HostVectors vectors_;
  std::pmr::monotonic_buffer_resource arena_{std::size_t{1} << 20};
  static inline std::size_t max_bytes_ = kMaxBytes;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<Set>> sets_;
  Set* last_set_ = nullptr;
  FrameTable<FrameCode*> frames_;
  std::vector<std::unique_ptr<FrameCode>> frame_codes_;
  std::vector<FrameNumber> used_frames_;
  /// Numbers for State::where() of frames that lie too far up to have their own.
  std::unordered_map<FrameNumber, std::uint64_t> far_frames_;
  std::deque<BlockCode> codes_;
  Draft draft_;
  Block cut_;
  BlockCode cut_code_;
  std::array<Op, kMaxInstructions + 1> cut_ops_;
  bool new_code_ = false;
  std::uint64_t made_ = 0, dropped_ = 0;
};

}  // namespace citcat::fast
