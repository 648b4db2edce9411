#pragma once
// A run of instructions that the engine executes without reporting each: what was decoded once, so
// that every execution is told from the registers before and after it.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "events/address.h"
#include "replay/engine/engine.h"
#include "replay/machine/block_notes.h"
#include "replay/x86/decoded_instruction.h"
#include "replay/x86/flag_effects.h"

namespace citcat {

/// How much of plain code - neither events nor instructions with effects beyond memory and
/// registers - is to be told. Each includes those before it.
enum class Detail : std::uint8_t {
  nothing,
  instructions,  ///< each of them, or the block
  comparison,    ///< of blocks in which something is expected, what they read and stored
  accesses,      ///< each of them
};

/// General registers at both ends of a run of instructions, and what its addresses are based on.
struct BlockRegisters {
  static constexpr std::size_t kEntry = 0, kExit = 8, kZero = 16;
  std::array<std::uint64_t, 17> value{};  ///< 8 at entry, 8 at exit, a zero; low halves count
  std::array<std::uint32_t, 7> base{};    ///< segment bases in SegmentRegister order, a zero

  void set_entry(const std::uint64_t* gprs) { copy(gprs, &value[kEntry]); }
  void set_exit(const std::uint64_t* gprs) { copy(gprs, &value[kExit]); }

 private:
  /// One by one, as the engine stored them a moment ago: a wider load would wait until all that it
  /// covers have reached the cache.
  static void copy(const volatile std::uint64_t* from, std::uint64_t* to) {
    for (int i = 0; i < 8; ++i) to[i] = from[i];
  }
};

/// A linear address as a function of BlockRegisters.
struct AddressFormula {
  static constexpr std::uint8_t kNoSegment = 6;
  std::uint32_t constant = 0;
  std::uint32_t mask = 0xffffffff;  ///< of the offset in its segment
  std::uint8_t base = BlockRegisters::kZero;
  std::uint8_t index = BlockRegisters::kZero;
  std::uint8_t shift = 0;
  std::uint8_t segment = kNoSegment;

  /// A register and a constant, and nothing else.
  bool is_plain() const {
    return index == BlockRegisters::kZero && segment == kNoSegment && mask == 0xffffffff;
  }
  /// From the other one at most.
  bool differs_by_constant(const AddressFormula& other) const {
    return mask == other.mask && base == other.base && index == other.index &&
           shift == other.shift && segment == other.segment;
  }
  /// Told by registers as they are after the block.
  bool needs_exit() const {
    const auto at_exit = [](std::uint8_t r) {
      return r >= BlockRegisters::kExit && r < BlockRegisters::kZero;
    };
    return at_exit(base) || at_exit(index);
  }
  std::uint32_t operator()(const BlockRegisters& r) const {
    const std::uint32_t offset = constant + static_cast<std::uint32_t>(r.value[base]) +
                                 (static_cast<std::uint32_t>(r.value[index]) << shift);
    return r.base[segment] + (offset & mask);
  }
};

/// Bytes of a line of the host's cache.
inline constexpr std::size_t kHostLine = 64;

/// What tells one translation of a block from another.
struct BlockKey {
  std::uint32_t linear = 0;  ///< of its first byte
  std::uint32_t frame = 0;   ///< physical page
  std::uint64_t mode = 0;    ///< everything of the processor's mode that shapes the code
  std::uint32_t code_base = 0;
  bool operator==(const BlockKey&) const = default;
};

/// A template belongs to one translation by the engine, which hands it back at each meeting. `mark`
/// is SegmentRights::mark() when it was met and run last.
struct alignas(kHostLine) BlockTemplate : TranslatedBlock {
  struct Instruction {
    DecodedInstruction info;
    std::uint32_t offset = 0;         ///< from the block's first byte
    std::uint32_t first_address = 0;  ///< of this one, among those of the block
    std::array<AddressFormula, 2> address;
  };
  /// A read of memory, or a store, to an address that registers at entry tell.
  struct Access {
    AddressFormula address;
    std::uint8_t size = 0;  ///< bytes
    bool write : 1 = false;
    bool plain : 1 = false;         ///< the address is a register and a constant
    bool needs_exit : 1 = false;    ///< told by registers as they are after the block
    std::uint16_t instruction = 0;  ///< number in this template

    std::uint32_t linear(const BlockRegisters& r) const {
      if (plain) return address.constant + static_cast<std::uint32_t>(r.value[address.base]);
      return address(r);
    }
  };
  static constexpr std::uint32_t kNoFrame = 1;

  // What is looked at whenever the block runs lies together, in one line of the host's cache.
  BlockKey key;
  /// Physical page of what lies in the page after the one it begins in, be it only what the engine
  /// reports behind these instructions; kNoFrame: nothing does.
  std::uint32_t second_frame = kNoFrame;
  std::uint32_t size = 0;  ///< bytes of `instructions`

 private:
  std::uint32_t count_ = 0;

 public:
  std::uint32_t whole_count = 0;  ///< instructions of this and all further parts together
  /// Size of an engine block at the first byte that shows this block to have been left before its
  /// first instruction: see was_left_before().
  static constexpr std::uint32_t kAlways = 0xffffffff, kNever = 0xfffffffe;
  std::uint32_t left_at_start = kAlways;
  bool has_addresses = false;  ///< registers at entry are needed to tell what it did
  bool needs_exit = false;     ///< and, when all of it ran, those at exit
  bool reported_tail = false;  ///< after these the engine reports the rest of its block
  bool whole_stores = false;   ///< one of `accesses` stores, of this or a further part
  /// Came after this one last. It may not exist any more: only to be fetched from memory ahead.
  const BlockTemplate* follower = nullptr;
  mutable BlockNotes notes;      ///< what observers keep with it
  FlagEffect flags;              ///< of all instructions; flag_effect() tells them
  bool comes_again = false;      ///< it may be met again
  bool shifts_by_count = false;  ///< by CL, in a block of Detail::comparison
  std::uint8_t refused = 0;  ///< how often it must not run although the engine was to execute it
  /// As often it may be refused before it is reported, until it is hot again.
  static constexpr std::uint8_t kMaxRefused = 4;
  /// Detail::comparison: all of them, in the order of the instructions; what each of these reads
  /// comes before what it stores.
  std::vector<Access> accesses;

  std::vector<Instruction> instructions;  ///< those that run unreported
  /// Where each of them does and the last one ends: their offsets in a few lines of the host's
  /// cache.
  std::vector<std::uint16_t> begins;
  /// The rest of the engine's block, where it runs unreported too: the first instruction of each
  /// such part is reported, because what registers hold there is needed and lost later.
  std::shared_ptr<BlockTemplate> next;
  bool is_part = false;  ///< `next` of another
  bool stack32 = true;
  bool stores = false;        ///< one of `accesses` does
  bool stores_apart = false;  ///< no two stores overlap, as far as their addresses show it
  // Of this and all further parts together.
  std::uint8_t segments_read = 0, segments_written = 0;  ///< bit s: SegmentRegister s
  std::uint8_t segments_flat = 0;                        ///< those that must have base 0

  std::uint32_t count() const { return count_; }
  /// Of the first operands of all instructions, in their order: how many, and where they are.
  std::size_t address_count() const { return plain_.size(); }
  void find_addresses(std::uint32_t* to, const BlockRegisters& registers) const {
    const std::size_t count = plain_.size();
    const PlainAddress* const plain = plain_.data();
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = plain[i].constant + static_cast<std::uint32_t>(registers.value[plain[i].base]);
    }
    for (const OtherAddress& other : others_) to[other.number] = other.formula(registers);
  }
  /// Of a block of Detail::comparison that has run: what it did to the flags. `ecx` as it is now.
  FlagEffect flag_effect(std::uint32_t ecx) const {
    return shifts_by_count ? counted_flag_effect(ecx % kCounts) : flags;
  }
  /// Number of the instruction that begins at `linear`; count() where none does.
  std::uint32_t index_of(std::uint32_t linear) const {
    const std::uint32_t offset = linear - key.linear;
    if (offset == 0) return 0;
    return offset < size ? search(offset) : count_;
  }
  /// The engine leaves a block in the middle only before a store into the block itself, which it
  /// then executes as a block of one instruction. A branch back into the block looks alike but for
  /// the length of what begins there: calls that may lead to themselves are in no block that they
  /// may store to (BlockPlanner::must_be_reported()). `which`: number of the instruction that comes
  /// after (part of) the block ran, `block_size`: bytes of the engine's block that begins with it.
  bool was_left_before(std::uint32_t which, std::uint32_t block_size) const {
    if (which != 0) return was_left_inside(which, block_size);
    return left_at_start == kAlways || left_at_start == block_size;
  }
  /// What comes after the block, at `linear`, shows without a closer look that all of it ran.
  bool ran_whole_before(std::uint32_t linear, std::uint32_t block_size) const {
    const std::uint32_t offset = linear - key.linear;
    return offset == 0 ? left_at_start != kAlways && left_at_start != block_size : offset >= size;
  }
  /// Of a block that is going to be compared: first the former, then, a little later, the latter.
  void prefetch() const {
    const char* const begin = reinterpret_cast<const char*>(this);
    for (std::size_t at = kHostLine; at < sizeof *this; at += kHostLine) {
      __builtin_prefetch(begin + at);
    }
  }
  void prefetch_accesses() const {
    __builtin_prefetch(accesses.data());
    __builtin_prefetch(begins.data());
  }
  /// To be called when `instructions` and `next` are complete.
  void seal();
  /// The last part.
  const BlockTemplate& last() const { return next ? next->last() : *this; }
  /// Bytes of this and all further parts.
  std::uint32_t whole_size() const { return last().end() - key.linear; }
  bool crosses_pages() const { return (key.linear & kPageMask) + whole_size() > kPageSize; }
  /// Whether it tells of a block of the engine of so many bytes.
  bool fits(std::uint32_t block_size) const {
    return last().reported_tail ? block_size >= whole_size() : block_size == whole_size();
  }
  /// Address behind the instructions of this part.
  std::uint32_t end() const { return key.linear + size; }
  /// Of the byte `offset` bytes into this part.
  PhysAddr physical(std::uint32_t offset) const {
    const std::uint32_t in_frame = (key.linear & kPageMask) + offset;
    return PhysAddr{in_frame < kPageSize ? key.frame + in_frame
                                         : second_frame + (in_frame & kPageMask)};
  }
  /// The first `count` instructions alone, for an execution that ended there.
  BlockTemplate first(std::uint32_t count, Detail detail) const;

 private:
  std::uint32_t search(std::uint32_t offset) const;
  FlagEffect counted_flag_effect(std::uint32_t count) const;
  void find_needs();
  bool was_left_inside(std::uint32_t which, std::uint32_t block_size) const;

  /// A register and a constant, as nearly all are. Where one is not, `others_` tells it.
  struct PlainAddress {
    std::uint32_t constant = 0, base = 0;
  };
  struct OtherAddress {
    AddressFormula formula;
    std::uint32_t number = 0;
  };
  void collect_addresses();

  std::vector<PlainAddress> plain_;
  std::vector<OtherAddress> others_;
  static constexpr std::uint32_t kCounts = 32;     ///< of shifts by CL
  mutable std::vector<FlagEffect> counted_flags_;  ///< by count, where bit `count` is set below
  mutable std::uint32_t counts_known_ = 0;
};

/// Takes the instructions of one block in order, until one must be reported and executed with care.
class BlockCompiler {
 public:
  /// `flat_segments`: those that have base 0 now. `detail`: what is to be told of the block;
  /// `stores_apart`: so that each store is told from what the block leaves in memory.
  BlockCompiler(const BlockKey& key, CpuModel model, bool stack32, std::uint8_t flat_segments,
                Detail detail, bool stores_apart);
  /// False when this instruction and all after it must be reported.
  bool add(const DecodedInstruction& info);
  /// The template. `second_frame`: as in BlockTemplate. `complete`: the engine's block ends with
  /// the last instruction added.
  BlockTemplate finish(std::uint32_t second_frame, bool complete);

 private:
  BlockTemplate finish(BlockTemplate block, bool complete, unsigned parts) const;

  BlockTemplate block_;
  CpuModel model_;
  std::uint8_t flat_segments_;
  Detail detail_;
};

}  // namespace citcat
