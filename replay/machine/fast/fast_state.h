#pragma once
// The data of the fast tier's handlers: decoded operations, the blocks that consist of them, and
// the state of a run.
//
// Within it addresses are numbers, as which handlers calculate them: of 32 bits, or of 64 in 64-bit
// mode. Addresses that come in or go out have a type (events/machine/address.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "events/machine/address.h"
#include "events/machine/byte_mask.h"
#include "replay/machine/observer.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/flag_effects.h"

namespace citcat {
class BlockCode;
}

namespace citcat::fast {

struct Block;
struct Op;
struct State;

/// One operation. Arithmetic flags travel in the last three arguments (LazyFlags); `area` is where
/// effective addresses of the block in progress go. A handler ends by calling the next one, in its
/// own place on the stack (a sibling call).
using Handler = void (*)(const Op* op, State* s, std::uint8_t* area, std::uint32_t fz,
                         std::uint32_t fs, std::uint32_t fc);

/// One instruction, as its handler wants it. Registers are byte offsets into State::r.
struct Op {
  Handler handler = nullptr;
  std::uint8_t a = 0, b = 0;         ///< register operands
  std::uint8_t base = 0, index = 0;  ///< of the memory operand
  /// Bits 0 and 1: log2 of the index's scale. kNarrow: the offset has 16 bits, in 64-bit mode 32.
  std::uint8_t shift = 0;
  std::uint8_t segment = 0;  ///< SegmentRegister of the memory operand
  std::uint16_t slot = 0;    ///< of its effective address in the area, in bytes
  std::uint64_t displacement = 0;
  std::uint64_t immediate = 0;

  static constexpr std::uint8_t kNarrow = 0x80;
};
static_assert(sizeof(Op) == 32);

/// EFLAGS' arithmetic flags, computed only when they are read.
///
/// ZF is z == 0. SF is bit 31 of `s`, PF the parity of its low byte. `c` holds carries: CF is bit
/// 31, OF bit 31 xor bit 30, AF bit 3. Carries out of each bit of an addition are such a word as
/// they are, shifted up for operands of less than 32 bits.
struct LazyFlags {
  std::uint32_t z = 0, s = 0, c = 0;

  static constexpr std::uint32_t kCarry = 1u << 31, kNextToCarry = 1u << 30, kHalf = 1u << 3;

  static LazyFlags from(std::uint32_t eflags) {
    const std::uint32_t cf = eflags & 1, of = eflags >> 11 & 1;
    return {(eflags & 0x40) != 0 ? 0u : 1u,
            ((eflags & 0x80) != 0 ? kCarry : 0) | ((eflags & 4) != 0 ? 0u : 1u),
            cf << 31 | (cf ^ of) << 30 | ((eflags & 0x10) != 0 ? kHalf : 0)};
  }
  /// OF SF ZF AF PF CF, in EFLAGS' places.
  std::uint32_t eflags() const {
    const std::uint32_t parity = (__builtin_popcount(s & 0xff) & 1) == 0 ? 4 : 0;
    return c >> 31 | parity | (c & kHalf) << 1 | (z == 0 ? 0x40u : 0) | s >> 31 << 7 |
           ((c ^ c << 1) >> 31) << 11;
  }
};

/// A translation that the handlers may use directly: any byte of the page may be accessed any
/// number of times. Subset of the Mmu's TLB.
struct TlbEntry {
  static constexpr std::uint64_t kNone = 1;  ///< no page's address
  std::uint64_t tag = kNone;                 ///< linear address of the page
  std::uint8_t* host = nullptr;              ///< where linear address 0 would be
};

/// Bytes that a copy of a block's area may go beyond it.
inline constexpr std::size_t kAreaStep = 64;

/// An offset in CS: 0 follows the last one of 32 bits.
constexpr std::uint64_t offset_in_mode(std::uint64_t offset, bool bits64) {
  return bits64 ? offset : static_cast<std::uint32_t>(offset);
}

/// A run of instructions that ends with the first one that may transfer control, or that has to be
/// made elsewhere. Valid for one place in memory, one mode of the processor and one policy.
struct Block {
  static constexpr std::uint64_t kNoEip = ~std::uint64_t{0};  ///< of one that must not run any more

  // What one block looks at of the next lies together.
  std::uint64_t eip = kNoEip;           ///< offset of its first byte in CS
  std::uint64_t where = 0;              ///< its page and frame: State::code_pages
  std::uint32_t page_index = 0;         ///< into State::code_pages
  std::uint32_t count = 0;              ///< instructions that its operations make
  std::uint32_t area_bytes = 0;         ///< of its area
  bool counts_shifts = false;           ///< shifts by CL are among them (Policy::exact)
  bool crosses = false;                 ///< it reaches into another page
  const std::uint8_t* image = nullptr;  ///< records before addresses are put in, or null
  const Op* ops = nullptr;
  mutable std::array<const Block*, 2> next{};   ///< found after it last: branch taken, and not
  mutable std::uint64_t executions = 0;         ///< not reported yet (Policy::counts())
  mutable const Block* next_counted = nullptr;  ///< State::counted
  FlagEffect flags;                             ///< of all its instructions, shifts by CL aside

  // The rest is for those who look closely.
  std::uint64_t first_eip = 0;  ///< what `eip` was made as
  LinearAddr linear;            ///< of its first byte
  PhysAddr frame;               ///< of its page
  PhysAddr second_frame;        ///< of the page that it reaches into
  std::uint32_t code_base = 0;  ///< of CS
  CodeMode mode;                ///< what its code was decoded as
  std::uint32_t bytes = 0;      ///< of code
  /// What must be made elsewhere: the instruction after the last of `count`.
  enum class Tail : std::uint8_t { branch, careful, string } tail = Tail::branch;
  const BlockCode* code = nullptr;        ///< as observers see it; may be null (BlockStore)
  const std::uint16_t* begins = nullptr;  ///< offset of each instruction, and of the end
  const std::uint16_t* areas = nullptr;   ///< the same in the area

  std::uint64_t eip_of(std::uint32_t instruction) const {
    return offset_in_mode(first_eip + begins[instruction], mode.bits64);
  }
  std::uint32_t number_of(const Op* op) const { return static_cast<std::uint32_t>(op - ops); }
};

/// Why handlers came back.
enum class Exit : std::uint8_t {
  branch,   ///< the block is done, and goes on at State::next
  careful,  ///< the instruction of State::at has to be made elsewhere; nothing of it is done
  tail,     ///< the block is done but for its tail (Block::tail)
  patched,  ///< before State::at, because the block's own code was stored to
};

/// What a store overwrote.
struct Overwritten {
  std::uint64_t bytes = 0;       ///< the first lowest
  std::uint8_t was_defined = 0;  ///< bit i, byte i was
};

/// One of the blocks that are compared together, or reported one after the other, in their order.
struct BatchedBlock {
  const Block* block = nullptr;
  std::uint32_t first = 0;   ///< instructions before it
  std::uint32_t logged = 0;  ///< accesses before its own
  std::uint8_t* area = nullptr;
};

/// One of the blocks that ran last, and its addresses.
struct TrailedBlock {
  const Block* block = nullptr;
  std::uint8_t* area = nullptr;
};

/// Stands where no block has been found.
inline constexpr Block kNowhere{};

inline constexpr std::size_t kTlbEntries = 256, kCodePages = 64, kJumps = 1024;

/// The state of the interpreter at one privilege level. FastTier loads it before a run and writes
/// it back after it.
struct State {
  static constexpr std::size_t kRegisters = 16;
  static constexpr std::size_t kVectorStep = 64;
  static constexpr std::uint8_t kZero = 8 * kRegisters;  ///< a register that is 0
  static constexpr std::uint32_t kMaxLogged = 2048;
  /// With more accesses a batch of blocks gets no further one, which may have as many.
  static constexpr std::uint32_t kFullLog = 1024;
  static constexpr std::int64_t kStop = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kMaxBatched = 64;
  static constexpr std::size_t kTrail = Interest::kMostTrail;

  /// General registers, and a zero. Outside 64-bit mode the upper halves are 0.
  std::array<std::uint64_t, kRegisters + 1> r{};
  std::uint32_t eflags = 0;      ///< without the arithmetic ones
  const Block* block = nullptr;  ///< in progress
  std::int64_t left = 0;         ///< instructions before the limit, those of `block` taken off
  std::int64_t least_left = 0;   ///< no block follows that leaves fewer: kStop stops at the next
  std::uint8_t* area_limit = nullptr;  ///< no area begins after it

  // Each store looks at the first of these in a comparison, and elsewhere at `next_store`.
  const std::uint8_t* trap = nullptr;  ///< bytes of a StoreTrap; null: there is none
  std::uint32_t trap_bytes = 0;
  bool trapped = false;              ///< one of them was stored to
  PlainStore* next_store = nullptr;  ///< for who asks for stores alone; null: nobody does

  std::array<std::uint64_t, 6> segment_base{};
  /// Last offset that may be read and written, -1 where none may.
  std::array<std::int64_t, 6> read_limit{}, write_limit{};
  std::uint32_t stack_mask = 0xffffffff;  ///< of ESP
  std::uint32_t code_limit = 0xffffffff;  ///< the last offset in CS
  std::array<std::uint16_t, 6> selectors{};
  bool iopl_allows = true;  ///< CLI, STI, PUSHF and POPF without further ado

  // What a handler could not access.
  std::uint64_t miss_linear = 0;
  std::uint8_t miss_size = 0;
  bool miss_write = false;

  // How it came back.
  Exit exit = Exit::branch;
  std::uint8_t exit_link = 0;
  std::uint64_t next = 0;
  const Op* at = nullptr;
  std::uint8_t* area = nullptr;
  LazyFlags flags;
  bool set_interrupts = false;  ///< STI was the last instruction

  FlagEffect untold;  ///< what blocks did to the flags
  std::array<std::uint8_t, 512> shift_counts{};
  std::uint32_t shift_count = 0;
  /// Accesses of blocks that are going to be compared or reported.
  std::array<DataReference, kMaxLogged> log;
  std::array<Overwritten, kMaxLogged> overwritten;  ///< by the stores among them, where compared
  std::uint32_t logged = 0;
  // With policies whose blocks go in batches `block` is the last of these.
  std::array<BatchedBlock, kMaxBatched> batch;
  std::uint32_t batched = 0, batch_limit = 1;
  std::int64_t batch_end = 0;                 ///< `left` where it has all that is expected
  std::array<PlainStore, kMaxLogged> stores;  ///< up to `next_store`
  // With Keep::trail: a ring of blocks, of which `block` is the last, and areas
  // from `area_begin` to `area_limit`, over and over.
  std::array<TrailedBlock, kTrail> trail;
  std::uint64_t trailed = 0;  ///< blocks that were put there
  std::uint8_t* area_begin = nullptr;
  const Op* one_op = nullptr;  ///< stands for this one while an operation is made alone
  std::array<Op, 2> alone;     ///< it, and what stops after it
  class MissResolver* resolver = nullptr;

  /// Where blocks that indirect branches lead to were found last.
  std::array<const Block*, kJumps> jumps{};
  std::array<const Block*, kJumps> batch_jumps{};      ///< the same where accesses are kept
  std::array<std::uint64_t, kCodePages> code_pages{};  ///< where() of code: may be entered
  std::array<TlbEntry, kTlbEntries> reads, writes;
  /// Physical addresses of the frames of the pages in `reads` and `writes`.
  std::array<std::uint64_t, kTlbEntries> read_frames{}, write_frames{};
  /// Which bytes are defined in the pages in `reads` and `writes`.
  std::array<const ByteMask*, kTlbEntries> defined_reads{};
  std::array<ByteMask*, kTlbEntries> defined_writes{};

  /// XMM registers, kVectorStep apart, of the engine; null where the system keeps SSE from
  /// programs.
  std::uint8_t* vectors = nullptr;
  std::uint32_t* mxcsr = nullptr;
  bool tells_accesses = false;  ///< somebody besides the judge receives `log`
  /// What the first operation that changes vectors keeps of them, to be taken back.
  bool keeps_vectors = false, vectors_kept = false;
  std::uint32_t kept_mxcsr = 0;
  std::array<std::array<std::uint8_t, 16>, kRegisters> kept_vectors;

  const Block* counted = nullptr;  ///< the first of those with Block::executions; a list

  /// When as many are there as may be, no further block follows, which may have as many again.
  void keep_store(const PlainStore& store) {
    *next_store++ = store;
    if (next_store > stores.data() + kFullLog) least_left = kStop;
  }
  /// Those that were kept. No more are from here on.
  std::span<const PlainStore> take_stores() {
    const PlainStore* const end = std::exchange(next_store, nullptr);
    least_left = 0;
    return end == nullptr ? std::span<const PlainStore>{} : std::span(stores.data(), end);
  }
  void count(const Block& b) {
    if (b.executions++ != 0) return;
    b.next_counted = counted;
    counted = &b;
  }
  /// `b` comes next in the batch; false: not any more.
  bool may_batch() const { return batched < batch_limit && left > batch_end && logged <= kFullLog; }
  void add_to_batch(const Block& b, std::uint8_t* where) {
    const BatchedBlock& last = batch[batched - 1];
    batch[batched++] = {&b, last.first + last.block->count, logged, where};
  }
  /// The number of instructions of `block` that were executed before it was left.
  std::uint32_t done_of_last() const {
    return exit == Exit::branch || exit == Exit::tail ? block->count : block->number_of(at);
  }
  /// Where the next area of a trail begins.
  std::uint8_t* trail_behind(std::uint8_t* end) const {
    return end < area_limit ? end : area_begin;
  }
  static std::size_t tlb_index(LinearAddr linear) { return linear.page() & (kTlbEntries - 1); }
  static std::size_t jump_index(std::uint64_t eip) { return (eip ^ eip >> 12) & (kJumps - 1); }
  /// Page and frame in one word: of the page's number the 36 bits that an address may have, and a
  /// number that is the frame's alone, below 2^28.
  static std::uint64_t where(LinearAddr page, std::uint64_t frame) {
    return (page.page() & 0xfffffffff) | frame << 36;
  }
  void save(Exit why, const Op* op, std::uint8_t* where, LazyFlags f) {
    exit = why;
    at = op;
    area = where;
    flags = f;
  }
};

/// Makes an access possible that a handler could not make.
class MissResolver {
 public:
  virtual ~MissResolver() = default;
  enum class Answer : std::uint8_t {
    again,    ///< it can be made now
    alone,    ///< by this operation alone (State::alone); then store_made() has to be called
    careful,  ///< not here
  };
  /// Resolves the access in State::miss_linear and so on, made by `op` of the block in progress.
  virtual Answer resolve(State& s, const Op* op) = 0;
  /// The store was made. False: the block in progress is no more.
  virtual bool store_made(State& s) = 0;
};

}  // namespace citcat::fast
