#pragma once
// The handlers of the fast tier: one for each operation, size and kind of operand, made for one
// policy. Private to the files that instantiate them.
//
// A handler keeps its hands off everything until all that it accesses has been found, so that it
// can be begun anew, or left to somebody else (miss()). What it does to flags is what the engine
// does, undefined ones included (QEMU's cc_helper_template.h has their values by behaviour; bit
// scans and tests follow replay/x86/undefined_flags.h).

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/handler_table.h"
#include "replay/machine/fast/lazy_alu.h"

// Sanitizers would keep something alive behind the call of the next handler, and the stack would
// grow with each instruction.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CITCAT_FAST_HANDLER \
  __attribute__((no_sanitize("address", "thread", "undefined"), optimize("O2")))
#else
#define CITCAT_FAST_HANDLER
#endif

#define FAST_PARAMETERS                                                                        \
  [[maybe_unused]] const Op *op, [[maybe_unused]] State *s, [[maybe_unused]] std::uint8_t *area, \
      [[maybe_unused]] std::uint32_t fz, [[maybe_unused]] std::uint32_t fs,                    \
      [[maybe_unused]] std::uint32_t fc
#define FAST_NEXT return op[1].handler(op + 1, s, area, fz, fs, fc)
#define FAST_MISS return miss(op, s, area, fz, fs, fc)

namespace citcat::fast {

/// An access was not found: State::miss_*. In handlers.cc.
void miss(FAST_PARAMETERS);

// ---------------------------------------------------------------------------------------------
// Policies

/// Nobody is told of plain code.
struct Plain {
  static constexpr bool kArea = false;    ///< addresses are put into an area
  static constexpr bool kImages = false;  ///< areas follow one another, and are nobody's concern
  static constexpr bool kChains = true;   ///< blocks run on without coming back
  static constexpr bool kExact = false;   ///< byte by byte, memory is looked at as defined or not
  static constexpr bool kCounts = false;  ///< each block counts how often it ran
  static constexpr bool kLog = false;     ///< accesses are kept, to be told, compared or undone
  static constexpr bool kBatches = false;  ///< so are the blocks that follow one another
  static constexpr bool kTraps = false;    ///< stores are looked at for the trap (State::trap)
  static constexpr bool kWide = false;     ///< in 64-bit mode
};
/// A trace is made of images of blocks.
struct Traced : Plain {
  static constexpr bool kArea = true, kImages = true;
};
/// Observers want to know how often each block ran.
struct Counted : Plain {
  static constexpr bool kCounts = true;
};
/// Observers are told of each block.
struct Told : Plain {
  static constexpr bool kArea = true, kChains = false;
};
/// With what each block reads and stores; several blocks are told together.
struct Referenced : Told {
  static constexpr bool kLog = true, kChains = true, kBatches = true;
};
// The same of a replay that is compared, where nothing is expected.
struct Exact : Plain {
  static constexpr bool kExact = true;
};
/// Somebody wants to know whether certain bytes are stored to, and nothing else.
struct ExactTrapped : Exact {
  static constexpr bool kTraps = true;
};
struct ExactTraced : Traced {
  static constexpr bool kExact = true;
};
struct ExactCounted : Counted {
  static constexpr bool kExact = true;
};
struct ExactTold : Told {
  static constexpr bool kExact = true;
};
/// Blocks are compared.
struct Logged : ExactTold {
  static constexpr bool kLog = true, kChains = true, kBatches = true;
};
/// Any of these in 64-bit mode.
template <class P>
struct Wide : P {
  static constexpr bool kWide = true;
};

// ---------------------------------------------------------------------------------------------
// Registers, memory

template <class T>
inline T get(const State* s, std::uint8_t at) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::uint8_t*>(s->r.data()) + at, sizeof value);
  return value;
}
/// Of 32 bits it clears the upper half, as in 64-bit mode; elsewhere there is nothing in it.
template <class T>
inline void put(State* s, std::uint8_t at, T value) {
  const std::conditional_t<sizeof(T) == 4, std::uint64_t, T> whole = value;
  std::memcpy(reinterpret_cast<std::uint8_t*>(s->r.data()) + at, &whole, sizeof whole);
}
inline constexpr std::uint8_t kEaxAt = 0, kAhAt = 1, kEcxAt = 8, kEdxAt = 16, kEbxAt = 24,
                              kEspAt = 32, kEbpAt = 40;
/// An offset in a segment, or a linear address.
template <class P>
using Offset = std::conditional_t<P::kWide, std::uint64_t, std::uint32_t>;
/// Bits of an offset behind an address-size prefix (Op::kNarrow).
template <class P>
inline constexpr Offset<P> kNarrowMask = P::kWide ? 0xffffffff : 0xffff;

template <class T>
inline T load(const std::uint8_t* host) {
  T value;
  std::memcpy(&value, host, sizeof value);
  return value;
}
template <class T>
inline void store(std::uint8_t* host, T value) {
  std::memcpy(host, &value, sizeof value);
}

/// Where an access goes; null where the handler cannot make it.
struct Place {
  std::uint8_t* host = nullptr;
  std::uint64_t linear = 0;
  explicit operator bool() const { return host != nullptr; }
};

inline Place note_miss(State* s, std::uint64_t linear, std::uint8_t size, bool write) {
  s->miss_linear = linear;
  s->miss_size = size;
  s->miss_write = write;
  return {};
}

/// `size` bytes at a linear address.
template <class P, std::uint8_t kSize, bool kWrite>
inline Place find(State* s, Offset<P> linear) {
  const std::size_t index = linear >> 12 & (kTlbEntries - 1);
  const TlbEntry& entry = kWrite ? s->writes[index] : s->reads[index];
  if (((linear + kSize - 1) & ~Offset<P>{kPageMask}) != static_cast<Offset<P>>(entry.tag))
      [[unlikely]]
    return note_miss(s, linear, kSize, kWrite);
  if constexpr (P::kExact && !kWrite) {
    if (!s->defined_reads[index]->all(linear & kPageMask, kSize)) [[unlikely]]
      return note_miss(s, linear, kSize, false);
  }
  return {reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(entry.host) + linear),
          linear};
}

template <class P, bool kFlat>
inline Offset<P> offset_of(const Op* op, const State* s) {
  const auto index = get<Offset<P>>(s, op->index);
  const Offset<P> offset = get<Offset<P>>(s, op->base) + static_cast<Offset<P>>(op->displacement) +
                           (index << (kFlat ? op->shift : op->shift & 3));
  if constexpr (kFlat) return offset;
  return (op->shift & Op::kNarrow) != 0 ? offset & kNarrowMask<P> : offset;
}

/// `kSize` bytes at an offset in a segment that has a base, or a limit.
template <class P, std::uint8_t kSize, bool kWrite>
inline Place find_in(State* s, unsigned segment, Offset<P> offset) {
  if constexpr (!P::kWide) {
    const std::int64_t limit = kWrite ? s->write_limit[segment] : s->read_limit[segment];
    if (std::int64_t{offset} + kSize - 1 > limit) [[unlikely]]
      return note_miss(s, 0, 0, kWrite);
  }
  return find<P, kSize, kWrite>(s, static_cast<Offset<P>>(s->segment_base[segment]) + offset);
}

/// The memory operand.
template <class P, bool kFlat, std::uint8_t kSize, bool kWrite>
inline Place find_operand(const Op* op, State* s) {
  const Offset<P> offset = offset_of<P, kFlat>(op, s);
  if constexpr (kFlat) return find<P, kSize, kWrite>(s, offset);
  return find_in<P, kSize, kWrite>(s, op->segment, offset);
}

inline constexpr unsigned kStackSegment = 2;

/// What lies at `pointer` on the stack.
template <class P, bool kFlat, std::uint8_t kSize, bool kWrite>
inline Place find_on_stack(State* s, Offset<P> pointer) {
  if constexpr (kFlat) return find<P, kSize, kWrite>(s, pointer);
  return find_in<P, kSize, kWrite>(s, kStackSegment, pointer & s->stack_mask);
}
template <class P, bool kFlat>
inline void set_stack_pointer(State* s, Offset<P> pointer) {
  if constexpr (kFlat) {
    put(s, kEspAt, pointer);
  } else {
    const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
    put(s, kEspAt, (esp & ~s->stack_mask) | (pointer & s->stack_mask));
  }
}

/// The effective address number `i` of the operation.
template <class P>
inline void tell(const Op* op, std::uint8_t* area, std::uint64_t linear, unsigned i = 0) {
  const auto address = static_cast<Offset<P>>(linear);
  constexpr std::size_t kSize = sizeof address;
  if constexpr (P::kArea) std::memcpy(area + op->slot + kSize * i, &address, kSize);
}

/// Notes an access of the page in `frame`.
template <std::uint8_t kSize, bool kWrite>
inline LoggedAccess& log(const Op* op, State* s, const Place& at, std::uint32_t frame) {
  LoggedAccess& access = s->log[s->logged++];
  access.physical = frame | (static_cast<std::uint32_t>(at.linear) & kPageMask);
  access.linear = at.linear;
  access.size = kSize;
  access.write = kWrite;
  access.op = s->one_op != nullptr ? s->one_op : op;
  return access;
}

template <class P, class T>
inline T read(const Op* op, State* s, const Place& at) {
  const T value = load<T>(at.host);
  if constexpr (P::kLog) {
    log<sizeof(T), false>(op, s, at, s->read_frames[at.linear >> 12 & (kTlbEntries - 1)]).after =
        value;
  }
  return value;
}

/// Of an operand found for a write, which is going to be written too.
template <class P, class T>
inline T read_to_write(const Op* op, State* s, const Place& at) {
  const T value = load<T>(at.host);
  if constexpr (P::kLog) {
    log<sizeof(T), false>(op, s, at, s->write_frames[at.linear >> 12 & (kTlbEntries - 1)]).after =
        value;
  }
  return value;
}
/// It was read before it is defined.
template <class P, class T>
inline bool may_read_to_write(State* s, const Place& at) {
  if constexpr (P::kExact) {
    const std::size_t index = at.linear >> 12 & (kTlbEntries - 1);
    if (!s->defined_writes[index]->all(at.linear & kPageMask, sizeof(T))) [[unlikely]] {
      note_miss(s, at.linear, sizeof(T), true);
      return false;
    }
  }
  return true;
}

template <class P, class T>
inline void write(const Op* op, State* s, const Place& at, T value) {
  [[maybe_unused]] const std::size_t index = at.linear >> 12 & (kTlbEntries - 1);
  [[maybe_unused]] LoggedAccess* access = nullptr;
  if constexpr (P::kLog) {
    access = &log<sizeof(T), true>(op, s, at, s->write_frames[index]);
    access->after = value;
  }
  if constexpr (P::kTraps) {
    // No access goes from one frame into another, and no frame lies in two places: those that begin
    // before the trap and end in it are the only ones to be noticed besides.
    const auto behind = reinterpret_cast<std::uintptr_t>(at.host) -
                        reinterpret_cast<std::uintptr_t>(s->trap) + (sizeof(T) - 1);
    if (behind < s->trap_bytes + (sizeof(T) - 1)) [[unlikely]]
      s->trapped = true;
  }
  if constexpr (P::kExact) {
    const std::size_t offset = at.linear & kPageMask;
    ByteMask& defined = *s->defined_writes[index];
    if constexpr (P::kLog) {
      access->was_defined = static_cast<std::uint8_t>(defined.bits(offset, sizeof(T)));
      access->before = load<T>(at.host);
    }
    defined.set(offset, sizeof(T));
  }
  store<T>(at.host, value);
}

// ---------------------------------------------------------------------------------------------
// Flags

template <unsigned C>
inline bool holds(std::uint32_t fz, std::uint32_t fs, std::uint32_t fc) {
  constexpr unsigned kKind = C >> 1;
  bool result = false;
  if constexpr (kKind == 0) result = overflow_bit(fc) != 0;
  if constexpr (kKind == 1) result = carry(fc);
  if constexpr (kKind == 2) result = fz == 0;
  if constexpr (kKind == 3) result = carry(fc) || fz == 0;
  if constexpr (kKind == 4) result = static_cast<std::int32_t>(fs) < 0;
  if constexpr (kKind == 5) result = (__builtin_popcount(fs & 0xff) & 1) == 0;
  if constexpr (kKind == 6) result = static_cast<std::int32_t>(fs ^ fc ^ fc << 1) < 0;
  if constexpr (kKind == 7)
    result = fz == 0 || static_cast<std::int32_t>(fs ^ fc ^ fc << 1) < 0;
  return result != ((C & 1) != 0);
}

// ---------------------------------------------------------------------------------------------
// From block to block

/// In place of a number of Block::next: the way leads to many places.
inline constexpr std::uint8_t kIndirect = 2;

/// The block is done, and the processor goes on at `next`.
template <class P>
[[gnu::always_inline]] inline void go(FAST_PARAMETERS, std::uint64_t next, std::uint8_t link) {
  if constexpr (P::kExact) {
    if (!s->block->counts_shifts) s->untold = s->untold + s->block->flags;
  }
  if constexpr (P::kChains) {
    const auto& jumps = P::kBatches ? s->batch_jumps : s->jumps;
    const Block* const b =
        link == kIndirect ? jumps[State::jump_index(next)] : s->block->next[link];
    bool may = b->eip == next && s->code_pages[b->page_index] == b->where && s->left >= b->count;
    if constexpr (P::kExact) may = may && !s->block->counts_shifts;
    if constexpr (P::kImages) may = may && area + s->block->area_bytes < s->area_limit;
    if constexpr (P::kBatches) may = may && s->may_batch();
    if (may) [[likely]] {
      if constexpr (P::kImages || P::kBatches) area += s->block->area_bytes;
      // Of records there is always something; addresses need not be.
      if (P::kImages || (P::kBatches && b->image != nullptr)) {
        const std::uint8_t* from = b->image;
        std::uint8_t* to = area;
        std::uint8_t* const end = area + b->area_bytes;
        do {
          std::memcpy(to, from, kAreaStep);
          to += kAreaStep;
          from += kAreaStep;
        } while (to < end);
      }
      if constexpr (P::kBatches) s->add_to_batch(*b, area);
      s->left -= b->count;
      s->block = b;
      if constexpr (P::kCounts) s->count(*b);
      return b->ops[0].handler(b->ops, s, area, fz, fs, fc);
    }
  }
  s->next = next;
  s->exit_link = link;
  s->save(Exit::branch, op, area, {fz, fs, fc});
}

/// Behind the last operation of a block that transfers nothing.
template <class P>
CITCAT_FAST_HANDLER void fall(FAST_PARAMETERS) {
  return go<P>(op, s, area, fz, fs, fc, op->immediate, 1);
}
/// What stands here is made elsewhere.
CITCAT_FAST_HANDLER inline void leave(FAST_PARAMETERS) {
  s->save(Exit::tail, op, area, {fz, fs, fc});
}

template <class P, unsigned C>
CITCAT_FAST_HANDLER void jump_if(FAST_PARAMETERS) {
  if (holds<C>(fz, fs, fc)) return go<P>(op, s, area, fz, fs, fc, op->immediate, 0);
  return go<P>(op, s, area, fz, fs, fc, op->displacement, 1);
}

template <class P>
CITCAT_FAST_HANDLER void jump(FAST_PARAMETERS) {
  return go<P>(op, s, area, fz, fs, fc, op->immediate, 0);
}

/// LOOPNE, LOOPE, LOOP, JCXZ; T is what counts of ECX.
template <class P, unsigned K, class T>
CITCAT_FAST_HANDLER void loop(FAST_PARAMETERS) {
  T count = get<T>(s, kEcxAt);
  bool taken = false;
  if constexpr (K == 3) {
    taken = count == 0;
  } else {
    count = static_cast<T>(count - 1);
    put<T>(s, kEcxAt, count);
    taken = count != 0;
    if constexpr (K == 0) taken = taken && fz != 0;
    if constexpr (K == 1) taken = taken && fz == 0;
  }
  if (taken) return go<P>(op, s, area, fz, fs, fc, op->immediate, 0);
  return go<P>(op, s, area, fz, fs, fc, op->displacement, 1);
}

/// The segment ends before: to be refused elsewhere.
template <class P>
inline bool is_target(const State* s, Offset<P> target) {
  if constexpr (P::kWide) return CpuContext::is_canonical(target);
  return target <= s->code_limit;
}
#define FAST_CHECK_TARGET(target)              \
  if (!is_target<P>(s, target)) [[unlikely]] { \
    note_miss(s, 0, 0, false);                 \
    FAST_MISS;                                 \
  }
/// What a target in CS is told as.
template <class P>
inline Offset<P> linear_target(const State* s, Offset<P> target) {
  return P::kWide ? target : static_cast<Offset<P>>(s->segment_base[1]) + target;
}

template <class P, class T>
CITCAT_FAST_HANDLER void jump_register(FAST_PARAMETERS) {
  const Offset<P> target = get<T>(s, op->a);
  FAST_CHECK_TARGET(target);
  tell<P>(op, area, linear_target<P>(s, target));
  return go<P>(op, s, area, fz, fs, fc, target, kIndirect);
}

template <class P, class T, bool kFlat>
CITCAT_FAST_HANDLER void jump_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  const Offset<P> target = load<T>(at.host);
  FAST_CHECK_TARGET(target);
  read<P, T>(op, s, at);
  tell<P>(op, area, at.linear);
  return go<P>(op, s, area, fz, fs, fc, target, kIndirect);
}

/// `displacement` is where the call returns to.
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void call(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  write<P, T>(op, s, at, static_cast<T>(op->displacement));
  set_stack_pointer<P, kFlatStack>(s, pointer);
  return go<P>(op, s, area, fz, fs, fc, op->immediate, 0);
}

/// `immediate` is where it returns to.
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void call_register(FAST_PARAMETERS) {
  const Offset<P> target = get<T>(s, op->a);
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  FAST_CHECK_TARGET(target);
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  tell<P>(op, area, linear_target<P>(s, target), 1);
  write<P, T>(op, s, at, static_cast<T>(op->immediate));
  set_stack_pointer<P, kFlatStack>(s, pointer);
  return go<P>(op, s, area, fz, fs, fc, target, kIndirect);
}

template <class P, class T, bool kFlat, bool kFlatStack>
CITCAT_FAST_HANDLER void call_memory(FAST_PARAMETERS) {
  const Place from = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!from) FAST_MISS;
  const Offset<P> target = load<T>(from.host);
  FAST_CHECK_TARGET(target);
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  read<P, T>(op, s, from);
  tell<P>(op, area, at.linear);
  tell<P>(op, area, from.linear, 1);
  write<P, T>(op, s, at, static_cast<T>(op->immediate));
  set_stack_pointer<P, kFlatStack>(s, pointer);
  return go<P>(op, s, area, fz, fs, fc, target, kIndirect);
}

/// `immediate` is what it releases besides.
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void ret(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt);
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  const Offset<P> target = load<T>(at.host);
  FAST_CHECK_TARGET(target);
  read<P, T>(op, s, at);
  tell<P>(op, area, at.linear);
  set_stack_pointer<P, kFlatStack>(s, pointer + kBytes<T> + static_cast<Offset<P>>(op->immediate));
  return go<P>(op, s, area, fz, fs, fc, target, kIndirect);
}

// ---------------------------------------------------------------------------------------------
// Arithmetic and moves

template <class P, unsigned K, class T>
CITCAT_FAST_HANDLER void alu_rr(FAST_PARAMETERS) {
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, get<T>(s, op->b), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

template <class P, unsigned K, class T>
CITCAT_FAST_HANDLER void alu_ri(FAST_PARAMETERS) {
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, static_cast<T>(op->immediate), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

/// Register, with memory.
template <class P, unsigned K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_rm(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, read<P, T>(op, s, at), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

/// Memory, with a register or an immediate.
template <class P, unsigned K, class T, bool kFlat, bool kImmediate>
[[gnu::always_inline]] inline void alu_memory(FAST_PARAMETERS) {
  constexpr bool kWrites = alu_writes(K);
  const Place at = find_operand<P, kFlat, sizeof(T), kWrites>(op, s);
  if (!at) FAST_MISS;
  Register<T> x = 0;
  if constexpr (kWrites && alu_reads(K)) {
    if (!may_read_to_write<P, T>(s, at)) FAST_MISS;
    x = read_to_write<P, T>(op, s, at);
  } else if constexpr (alu_reads(K)) {
    x = read<P, T>(op, s, at);
  }
  tell<P>(op, area, at.linear);
  const Register<T> y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  const Register<T> z = alu<K, T>(x, y, fz, fs, fc);
  if constexpr (kWrites) write<P, T>(op, s, at, static_cast<T>(z));
  FAST_NEXT;
}
template <class P, unsigned K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_mr(FAST_PARAMETERS) {
  return alu_memory<P, K, T, kFlat, false>(op, s, area, fz, fs, fc);
}
template <class P, unsigned K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_mi(FAST_PARAMETERS) {
  return alu_memory<P, K, T, kFlat, true>(op, s, area, fz, fs, fc);
}

template <class P, class To, class From, bool kSigned>
CITCAT_FAST_HANDLER void extend_register(FAST_PARAMETERS) {
  const From value = get<From>(s, op->b);
  put<To>(s, op->a, kSigned ? static_cast<To>(static_cast<Signed<From>>(value)) : To{value});
  FAST_NEXT;
}
template <class P, class To, class From, bool kSigned, bool kFlat>
CITCAT_FAST_HANDLER void extend_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(From), false>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const From value = read<P, From>(op, s, at);
  put<To>(s, op->a, kSigned ? static_cast<To>(static_cast<Signed<From>>(value)) : To{value});
  FAST_NEXT;
}

template <class P, class T, bool kFlat>
CITCAT_FAST_HANDLER void lea(FAST_PARAMETERS) {
  put<T>(s, op->a, static_cast<T>(offset_of<P, kFlat>(op, s)));
  FAST_NEXT;
}

template <class P>
CITCAT_FAST_HANDLER void nothing(FAST_PARAMETERS) {
  FAST_NEXT;
}

// INC, DEC, NOT, NEG.
enum Unary : unsigned { kInc, kDec, kNot, kNeg, kUnaryCount };

template <unsigned K, class T>
inline T unary(T x, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  if constexpr (K == kNot) {
    return static_cast<T>(~x);
  } else if constexpr (K == kNeg) {
    return static_cast<T>(alu<kSub, T>(0, x, fz, fs, fc));
  } else {
    std::uint32_t carries = 0;
    const Register<T> z = alu < K == kInc ? kAdd : kSub, T > (x, 1, fz, fs, carries);
    fc = make_carries(fc & LazyFlags::kCarry, overflow_bit(carries), carries & LazyFlags::kHalf);
    return static_cast<T>(z);
  }
}
template <class P, unsigned K, class T>
CITCAT_FAST_HANDLER void unary_register(FAST_PARAMETERS) {
  put<T>(s, op->a, unary<K, T>(get<T>(s, op->a), fz, fs, fc));
  FAST_NEXT;
}
template <class P, unsigned K, class T, bool kFlat>
CITCAT_FAST_HANDLER void unary_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<P, T>(s, at)) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T x = read_to_write<P, T>(op, s, at);
  write<P, T>(op, s, at, unary<K, T>(x, fz, fs, fc));
  FAST_NEXT;
}

// Shifts and rotations, in the order of their ModRM.reg; 6 is 4.
enum Shift : unsigned { kRol, kRor, kRcl, kRcr, kShl, kShr, kSal, kSar, kShiftCount };

/// By `count`, which is 1 to 31, or 63 of 64 bits.
template <unsigned K, class T>
inline T shift(T x, unsigned count, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  constexpr unsigned kWidth = kBits<T>;
  if constexpr (K == kShl || K == kSal) {
    const std::uint64_t before = std::uint64_t{x} << (count - 1);
    const T z = static_cast<T>(before << 1);
    const std::uint32_t cf = top<T>(static_cast<T>(before));
    set_result<T>(z, fz, fs);
    fc = make_carries(cf, cf ^ top<T>(z));
    return z;
  } else if constexpr (K == kShr || K == kSar) {
    using Whole = std::conditional_t<sizeof(T) == 8 && K == kShr, std::uint64_t, std::int64_t>;
    const Whole wide =
        K == kSar ? static_cast<Whole>(static_cast<Signed<T>>(x)) : static_cast<Whole>(x);
    const Whole before = wide >> (count - 1);
    const T z = static_cast<T>(before >> 1);
    set_result<T>(z, fz, fs);
    fc = make_carries(static_cast<std::uint32_t>(before & 1) << 31,
                      top<T>(static_cast<T>(before)) ^ top<T>(z));
    return z;
  } else if constexpr (K == kRol) {
    const T z = std::rotl(x, static_cast<int>(count % kWidth));
    const std::uint32_t cf = static_cast<std::uint32_t>(z) << 31;
    fc = make_carries(cf, cf ^ top<T>(z), fc & LazyFlags::kHalf);
    return z;
  } else if constexpr (K == kRor) {
    const T z = std::rotr(x, static_cast<int>(count % kWidth));
    const std::uint32_t cf = top<T>(z);
    fc = make_carries(cf, cf ^ top<T>(static_cast<T>(z << 1)), fc & LazyFlags::kHalf);
    return z;
  } else {
    // Through the carry: a word of one bit more.
    const unsigned turns = count % (kWidth + 1);
    if (turns == 0) {
      return x;
    }
    using Longer = std::conditional_t<sizeof(T) == 8, Uint128, std::uint64_t>;
    const Longer word = Longer{x} | Longer{fc >> 31} << kWidth;
    constexpr unsigned kWhole = kWidth + 1;
    const unsigned left = K == kRcl ? turns : kWhole - turns;
    const Longer turned = word << left | word >> (kWhole - left);
    const T z = static_cast<T>(turned);
    const std::uint32_t cf = static_cast<std::uint32_t>(turned >> kWidth & 1) << 31;
    fc = make_carries(cf, top<T>(x) ^ top<T>(z), fc & LazyFlags::kHalf);
    return z;
  }
}

template <class T>
inline constexpr unsigned kCountMask = sizeof(T) == 8 ? 63 : 31;

template <class P, class T>
inline unsigned count_in_cl(State* s) {
  const unsigned count = get<std::uint8_t>(s, kEcxAt) & kCountMask<T>;
  if constexpr (P::kExact) s->shift_counts[s->shift_count++] = static_cast<std::uint8_t>(count);
  return count;
}

/// A register of 32 bits that an operation leaves as it is has no upper half any more in 64-bit
/// mode.
template <class P, class T>
inline void clear_upper_half(State* s, std::uint8_t at) {
  if constexpr (P::kWide && sizeof(T) == 4) put<T>(s, at, get<T>(s, at));
}

template <class P, unsigned K, class T, bool kByCl>
CITCAT_FAST_HANDLER void shift_register(FAST_PARAMETERS) {
  const unsigned count = kByCl ? count_in_cl<P, T>(s) : static_cast<unsigned>(op->immediate);
  if (kByCl && count == 0) {
    clear_upper_half<P, T>(s, op->a);
    FAST_NEXT;
  }
  put<T>(s, op->a, shift<K, T>(get<T>(s, op->a), count, fz, fs, fc));
  FAST_NEXT;
}
/// By CL only where that is not 0: then nothing is written.
template <class P, unsigned K, class T, bool kByCl, bool kFlat>
CITCAT_FAST_HANDLER void shift_memory(FAST_PARAMETERS) {
  auto count = static_cast<unsigned>(op->immediate);
  if constexpr (kByCl) {
    count = get<std::uint8_t>(s, kEcxAt) & kCountMask<T>;
    if (count == 0) {
      note_miss(s, 0, 0, true);
      FAST_MISS;
    }
  }
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<P, T>(s, at)) FAST_MISS;
  if constexpr (kByCl) count_in_cl<P, T>(s);
  tell<P>(op, area, at.linear);
  const T x = read_to_write<P, T>(op, s, at);
  write<P, T>(op, s, at, shift<K, T>(x, count, fz, fs, fc));
  FAST_NEXT;
}

template <class T>
using Twice = std::conditional_t<
    sizeof(T) == 1, std::uint16_t,
    std::conditional_t<sizeof(T) == 2, std::uint32_t,
                       std::conditional_t<sizeof(T) == 4, std::uint64_t, Uint128>>>;

/// SHLD and SHRD of 32 bits or more. `a` is shifted, `b` gives the bits.
template <class P, bool kRight, bool kByCl, class T>
CITCAT_FAST_HANDLER void double_shift(FAST_PARAMETERS) {
  const unsigned count = kByCl ? count_in_cl<P, T>(s) : static_cast<unsigned>(op->immediate);
  if (kByCl && count == 0) {
    clear_upper_half<P, T>(s, op->a);
    FAST_NEXT;
  }
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  // Both together, by one less: its last bit is the carry.
  using W = Twice<T>;
  constexpr unsigned kWidth = kBits<T>;
  const W both = kRight ? x | W{y} << kWidth : y | W{x} << kWidth;
  // (Of 64 bits the engine has it without those of `b`, which OF shows where it is undefined.)
  const W whole = kRight && sizeof(T) == 8 ? W{x} : both;
  const auto before = static_cast<T>(kRight ? whole >> (count - 1) : both << (count - 1) >> kWidth);
  const auto z = static_cast<T>(kRight ? both >> count : both << count >> kWidth);
  const std::uint32_t cf = kRight ? static_cast<std::uint32_t>(before) << 31 : top<T>(before);
  put<T>(s, op->a, z);
  set_result<T>(z, fz, fs);
  fc = make_carries(cf, top<T>(static_cast<T>(before ^ z)));
  FAST_NEXT;
}

// ---------------------------------------------------------------------------------------------
// Multiplication and division

/// The low and the high half of a product of the accumulator. Flags: those of the low half; CF and
/// OF where the high half matters.
template <class T, bool kSigned>
inline void multiply(State* s, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  using W = Twice<T>;
  const T x = get<T>(s, kEaxAt);
  const W product = kSigned ? static_cast<W>(static_cast<Signed<W>>(static_cast<Signed<T>>(x)) *
                                             static_cast<Signed<W>>(static_cast<Signed<T>>(y)))
                            : static_cast<W>(W{x} * W{y});
  const T low = static_cast<T>(product), high = static_cast<T>(product >> kBits<T>);
  if constexpr (sizeof(T) == 1) {
    put<std::uint16_t>(s, kEaxAt, product);
  } else {
    put<T>(s, kEaxAt, low);
    put<T>(s, kEdxAt, high);
  }
  const T plain = kSigned ? static_cast<T>(static_cast<Signed<T>>(low) >> (kBits<T> - 1)) : T{0};
  set_result<T>(low, fz, fs);
  fc = high != plain ? LazyFlags::kCarry : 0;
  fc = make_carries(fc, fc);
}

/// False where it is an error.
template <class T, bool kSigned>
inline bool divide(State* s, T y) {
  using W = Twice<T>;
  if (y == 0) return false;
  W dividend = 0;
  if constexpr (sizeof(T) == 1) {
    dividend = get<std::uint16_t>(s, kEaxAt);
  } else {
    dividend = static_cast<W>(W{get<T>(s, kEdxAt)} << kBits<T> | get<T>(s, kEaxAt));
  }
  T quotient = 0, remainder = 0;
  if constexpr (kSigned) {
    const auto wide = static_cast<Signed<W>>(dividend);
    const auto by = static_cast<Signed<W>>(static_cast<Signed<T>>(y));
    constexpr W kLowest = W{1} << (kBits<W> - 1);
    if (by == -1 && dividend == kLowest) return false;
    const auto result = static_cast<Signed<W>>(wide / by);
    if (result != static_cast<Signed<T>>(result)) return false;
    quotient = static_cast<T>(result);
    remainder = static_cast<T>(wide % by);
  } else {
    const W result = static_cast<W>(dividend / y);
    if (result != static_cast<T>(result)) return false;
    quotient = static_cast<T>(result);
    remainder = static_cast<T>(dividend % y);
  }
  if constexpr (sizeof(T) == 1) {
    put<std::uint16_t>(s, kEaxAt, static_cast<std::uint16_t>(quotient | remainder << 8));
  } else {
    put<T>(s, kEaxAt, quotient);
    put<T>(s, kEdxAt, remainder);
  }
  return true;
}

// Of ModRM.reg 4 to 7 of F6 and F7.
enum Accumulator : unsigned { kMul, kImul, kDiv, kIdiv, kAccumulatorCount };

template <unsigned K, class T>
inline bool accumulate(State* s, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  if constexpr (K == kMul || K == kImul) {
    multiply<T, K == kImul>(s, y, fz, fs, fc);
    return true;
  } else {
    return divide<T, K == kIdiv>(s, y);
  }
}
template <class P, unsigned K, class T>
CITCAT_FAST_HANDLER void accumulate_register(FAST_PARAMETERS) {
  if (!accumulate<K, T>(s, get<T>(s, op->a), fz, fs, fc)) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  FAST_NEXT;
}
template <class P, unsigned K, class T, bool kFlat>
CITCAT_FAST_HANDLER void accumulate_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  if (!accumulate<K, T>(s, load<T>(at.host), fz, fs, fc)) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  tell<P>(op, area, at.linear);
  read<P, T>(op, s, at);
  FAST_NEXT;
}

template <class T>
inline T multiply_two(T x, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  using Product = std::conditional_t<sizeof(T) == 8, Int128, std::int64_t>;
  const Product product = Product{static_cast<Signed<T>>(x)} * static_cast<Signed<T>>(y);
  const T z = static_cast<T>(product);
  set_result<T>(z, fz, fs);
  fc = product != static_cast<Signed<T>>(z) ? LazyFlags::kCarry : 0;
  fc = make_carries(fc, fc);
  return z;
}
/// a = b * (immediate, or a).
template <class P, class T, bool kImmediate>
CITCAT_FAST_HANDLER void multiply_register(FAST_PARAMETERS) {
  const T y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  put<T>(s, op->a, multiply_two<T>(get<T>(s, op->b), y, fz, fs, fc));
  FAST_NEXT;
}
template <class P, class T, bool kImmediate, bool kFlat>
CITCAT_FAST_HANDLER void multiply_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  put<T>(s, op->a, multiply_two<T>(read<P, T>(op, s, at), y, fz, fs, fc));
  FAST_NEXT;
}

// ---------------------------------------------------------------------------------------------
// Stack

template <class P, class T, bool kFlatStack>
[[gnu::always_inline]] inline void push_value(FAST_PARAMETERS, T value) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  write<P, T>(op, s, at, value);
  set_stack_pointer<P, kFlatStack>(s, pointer);
  FAST_NEXT;
}
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_register(FAST_PARAMETERS) {
  return push_value<P, T, kFlatStack>(op, s, area, fz, fs, fc, get<T>(s, op->a));
}
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_immediate(FAST_PARAMETERS) {
  return push_value<P, T, kFlatStack>(op, s, area, fz, fs, fc, static_cast<T>(op->immediate));
}
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_flags(FAST_PARAMETERS) {
  const std::uint32_t value = s->eflags | LazyFlags{fz, fs, fc}.eflags();
  return push_value<P, T, kFlatStack>(op, s, area, fz, fs, fc, static_cast<T>(value));
}
template <class P, class T, bool kFlat, bool kFlatStack>
CITCAT_FAST_HANDLER void push_memory(FAST_PARAMETERS) {
  const Place from = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!from) FAST_MISS;
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  const T value = read<P, T>(op, s, from);
  tell<P>(op, area, at.linear);
  tell<P>(op, area, from.linear, 1);
  write<P, T>(op, s, at, value);
  set_stack_pointer<P, kFlatStack>(s, pointer);
  FAST_NEXT;
}
/// A selector takes a slot of T, of which the upper half stays as it is.
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_segment(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<P, kFlatStack, 2, true>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  write<P, std::uint16_t>(op, s, at, s->selectors[op->segment]);
  set_stack_pointer<P, kFlatStack>(s, pointer);
  FAST_NEXT;
}
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_register(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt);
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T value = read<P, T>(op, s, at);
  set_stack_pointer<P, kFlatStack>(s, pointer + kBytes<T>);
  put<T>(s, op->a, value);
  FAST_NEXT;
}
/// ESP is not the base of the operand: its address would be that of after the increment.
template <class P, class T, bool kFlat, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_memory(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt);
  const Place from = find_on_stack<P, kFlatStack, sizeof(T), false>(s, pointer);
  if (!from) FAST_MISS;
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T value = read<P, T>(op, s, from);
  write<P, T>(op, s, at, value);
  set_stack_pointer<P, kFlatStack>(s, pointer + kBytes<T>);
  FAST_NEXT;
}
/// Only arithmetic flags, DF and IF: what loads others is made elsewhere.
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_flags(FAST_PARAMETERS) {
  constexpr std::uint32_t kIf = 0x200, kDf = 0x400;
  const Offset<P> pointer = get<Offset<P>>(s, kEspAt);
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  const auto value = static_cast<std::uint32_t>(load<T>(at.host));
  const std::uint32_t kept = s->eflags;
  const std::uint32_t others = (value ^ kept) & ~(kArithmeticFlags | kDf | kIf | 0x802a) &
                               static_cast<std::uint32_t>(std::numeric_limits<T>::max());
  if (others != 0 || (!s->iopl_allows && ((value ^ kept) & kIf) != 0)) [[unlikely]] {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  tell<P>(op, area, at.linear);
  read<P, T>(op, s, at);
  s->eflags = (kept & ~(kDf | kIf)) | (value & (kDf | kIf));
  set_stack_pointer<P, kFlatStack>(s, pointer + kBytes<T>);
  const LazyFlags flags = LazyFlags::from(value);
  fz = flags.z;
  fs = flags.s;
  fc = flags.c;
  FAST_NEXT;
}
template <class P, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void leave_frame(FAST_PARAMETERS) {
  const Offset<P> pointer = get<Offset<P>>(s, kEbpAt);
  const Place at = find_on_stack<P, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T value = read<P, T>(op, s, at);
  set_stack_pointer<P, kFlatStack>(s, pointer + kBytes<T>);
  put<T>(s, kEbpAt, value);
  FAST_NEXT;
}
/// All eight slots lie in one page, or it is made elsewhere.
template <class P, bool kFlatStack>
CITCAT_FAST_HANDLER void push_all(FAST_PARAMETERS) {
  const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
  const Place low = find_on_stack<P, kFlatStack, 32, true>(s, esp - 32);
  if (!low) FAST_MISS;
  tell<P>(op, area, low.linear + 28);
  for (std::uint8_t i = 0; i < 8; ++i) {
    const std::uint32_t above = 28u - 4u * i;
    write<P, std::uint32_t>(op, s, {low.host + above, low.linear + above},
                            get<std::uint32_t>(s, static_cast<std::uint8_t>(8 * i)));
  }
  set_stack_pointer<P, kFlatStack>(s, esp - 32);
  FAST_NEXT;
}
template <class P, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_all(FAST_PARAMETERS) {
  const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
  const Place low = find_on_stack<P, kFlatStack, 32, false>(s, esp);
  if (!low) FAST_MISS;
  tell<P>(op, area, low.linear);
  for (std::uint8_t i = 0; i < 8; ++i) {
    const std::uint32_t above = 4u * i;
    const auto value =
        read<P, std::uint32_t>(op, s, {low.host + above, low.linear + above});
    const auto to = static_cast<std::uint8_t>(56 - 8 * i);
    if (to != kEspAt) put(s, to, value);
  }
  set_stack_pointer<P, kFlatStack>(s, esp + 32);
  FAST_NEXT;
}

// ---------------------------------------------------------------------------------------------
// By conditions, bits, exchanges

template <class P, unsigned C>
CITCAT_FAST_HANDLER void set_register(FAST_PARAMETERS) {
  put<std::uint8_t>(s, op->a, holds<C>(fz, fs, fc) ? 1 : 0);
  FAST_NEXT;
}
template <class P, unsigned C, bool kFlat>
CITCAT_FAST_HANDLER void set_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, 1, true>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  write<P, std::uint8_t>(op, s, at, holds<C>(fz, fs, fc) ? 1 : 0);
  FAST_NEXT;
}
template <class P, unsigned C, class T>
CITCAT_FAST_HANDLER void move_register_if(FAST_PARAMETERS) {
  if (holds<C>(fz, fs, fc)) {
    put<T>(s, op->a, get<T>(s, op->b));
  } else {
    clear_upper_half<P, T>(s, op->a);
  }
  FAST_NEXT;
}
/// Reads in any case.
template <class P, unsigned C, class T, bool kFlat>
CITCAT_FAST_HANDLER void move_memory_if(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T value = read<P, T>(op, s, at);
  if (holds<C>(fz, fs, fc)) {
    put<T>(s, op->a, value);
  } else {
    clear_upper_half<P, T>(s, op->a);
  }
  FAST_NEXT;
}

// BT, BTS, BTR, BTC.
enum BitTest : unsigned { kBt, kBts, kBtr, kBtc, kBitTestCount };

template <unsigned K, class T>
inline T test_bit(T x, unsigned bit, std::uint32_t& fc) {
  const T mask = static_cast<T>(T{1} << bit);
  const std::uint32_t cf = (x & mask) != 0 ? LazyFlags::kCarry : 0;
  fc = make_carries(cf, overflow_bit(fc), fc & LazyFlags::kHalf);
  return static_cast<T>(K == kBts ? x | mask : K == kBtr ? x & ~mask : K == kBtc ? x ^ mask : x);
}
template <class P, unsigned K, class T, bool kImmediate>
CITCAT_FAST_HANDLER void test_register_bit(FAST_PARAMETERS) {
  const auto bit = static_cast<unsigned>(
      (kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->b)) & (kBits<T> - 1));
  const T z = test_bit<K, T>(get<T>(s, op->a), bit, fc);
  if constexpr (K != kBt) put<T>(s, op->a, z);
  FAST_NEXT;
}
/// Of the unit that holds the bit, wherever that is, where a register names it.
template <class P, unsigned K, class T, bool kImmediate, bool kFlat>
CITCAT_FAST_HANDLER void test_memory_bit(FAST_PARAMETERS) {
  constexpr bool kWrites = K != kBt;
  Offset<P> offset = offset_of<P, kFlat>(op, s);
  const T number = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->b);
  if constexpr (!kImmediate) {
    constexpr int kUnit = sizeof(T) == 8 ? 6 : sizeof(T) == 4 ? 5 : 4;
    using Distance = Signed<Offset<P>>;
    offset += static_cast<Offset<P>>(Distance{static_cast<Signed<T>>(number)} >> kUnit) * kBytes<T>;
    if constexpr (!kFlat) {
      if ((op->shift & Op::kNarrow) != 0) offset &= kNarrowMask<P>;
    }
  }
  Place at;
  if constexpr (kFlat) {
    at = find<P, sizeof(T), kWrites>(s, offset);
  } else {
    at = find_in<P, sizeof(T), kWrites>(s, op->segment, offset);
  }
  if (!at) FAST_MISS;
  if constexpr (kWrites) {
    if (!may_read_to_write<P, T>(s, at)) FAST_MISS;
  }
  tell<P>(op, area, at.linear);
  const T x = kWrites ? read_to_write<P, T>(op, s, at) : read<P, T>(op, s, at);
  const T z = test_bit<K, T>(x, static_cast<unsigned>(number & (kBits<T> - 1)), fc);
  if constexpr (kWrites) write<P, T>(op, s, at, z);
  FAST_NEXT;
}

/// BSF and BSR. Without a bit the register and all flags but ZF stay.
template <bool kReverse, class T>
inline void scan(State* s, std::uint8_t to, T x, std::uint32_t& fz, std::uint32_t& fs,
                 std::uint32_t& fc) {
  fz = sizeof(T) == 8 ? (x != 0 ? 1 : 0) : static_cast<std::uint32_t>(x);
  if (x == 0) return;
  const auto found = static_cast<std::uint32_t>(kReverse ? std::bit_width(x) - 1
                                                         : std::countr_zero(x));
  put<T>(s, to, static_cast<T>(found));
  fs = found;  // below 64: no sign, and its parity
  fc = 0;
}
template <class P, bool kReverse, class T>
CITCAT_FAST_HANDLER void scan_register(FAST_PARAMETERS) {
  scan<kReverse, T>(s, op->a, get<T>(s, op->b), fz, fs, fc);
  FAST_NEXT;
}
template <class P, bool kReverse, class T, bool kFlat>
CITCAT_FAST_HANDLER void scan_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  scan<kReverse, T>(s, op->a, read<P, T>(op, s, at), fz, fs, fc);
  FAST_NEXT;
}

template <class P, class T>
CITCAT_FAST_HANDLER void exchange_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  put<T>(s, op->a, y);
  put<T>(s, op->b, x);
  FAST_NEXT;
}
template <class P, class T, bool kFlat>
CITCAT_FAST_HANDLER void exchange_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<P, T>(s, at)) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T value = get<T>(s, op->a);
  put<T>(s, op->a, read_to_write<P, T>(op, s, at));
  write<P, T>(op, s, at, value);
  FAST_NEXT;
}
template <class P, class T>
CITCAT_FAST_HANDLER void exchange_add_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  const Register<T> z = alu<kAdd, T>(x, y, fz, fs, fc);
  put<T>(s, op->b, x);
  put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}
template <class P, class T, bool kFlat>
CITCAT_FAST_HANDLER void exchange_add_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<P, T>(s, at)) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T x = read_to_write<P, T>(op, s, at), y = get<T>(s, op->a);
  const Register<T> z = alu<kAdd, T>(x, y, fz, fs, fc);
  put<T>(s, op->a, x);
  write<P, T>(op, s, at, static_cast<T>(z));
  FAST_NEXT;
}
/// `b` is the new value of `a`.
template <class P, class T>
CITCAT_FAST_HANDLER void compare_exchange_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), wanted = get<T>(s, kEaxAt);
  alu<kCmp, T>(wanted, x, fz, fs, fc);
  if (x == wanted) {
    put<T>(s, op->a, get<T>(s, op->b));
  } else {
    put<T>(s, kEaxAt, x);
  }
  FAST_NEXT;
}
/// Writes in either case.
template <class P, class T, bool kFlat>
CITCAT_FAST_HANDLER void compare_exchange_memory(FAST_PARAMETERS) {
  const Place at = find_operand<P, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<P, T>(s, at)) FAST_MISS;
  tell<P>(op, area, at.linear);
  const T x = read_to_write<P, T>(op, s, at), wanted = get<T>(s, kEaxAt);
  alu<kCmp, T>(wanted, x, fz, fs, fc);
  write<P, T>(op, s, at, x == wanted ? get<T>(s, op->a) : x);
  if (x != wanted) put<T>(s, kEaxAt, x);
  FAST_NEXT;
}
template <class P, class T>
CITCAT_FAST_HANDLER void swap_bytes(FAST_PARAMETERS) {
  if constexpr (sizeof(T) == 8) {
    put<T>(s, op->a, __builtin_bswap64(get<T>(s, op->a)));
  } else {
    put<T>(s, op->a, __builtin_bswap32(get<T>(s, op->a)));
  }
  FAST_NEXT;
}

template <class P, bool kFlat>
CITCAT_FAST_HANDLER void translate_byte(FAST_PARAMETERS) {
  Offset<P> offset = get<Offset<P>>(s, kEbxAt) + get<std::uint8_t>(s, kEaxAt);
  Place at;
  if constexpr (kFlat) {
    at = find<P, 1, false>(s, offset);
  } else {
    if ((op->shift & Op::kNarrow) != 0) offset &= kNarrowMask<P>;
    at = find_in<P, 1, false>(s, op->segment, offset);
  }
  if (!at) FAST_MISS;
  tell<P>(op, area, at.linear);
  put<std::uint8_t>(s, kEaxAt, read<P, std::uint8_t>(op, s, at));
  FAST_NEXT;
}

// ---------------------------------------------------------------------------------------------
// Flags and single registers

// CBW, CWDE, CWD, CDQ are extensions within EAX or into EDX.
template <class P, class T>
CITCAT_FAST_HANDLER void extend_into_edx(FAST_PARAMETERS) {
  const auto value = static_cast<Signed<T>>(get<T>(s, kEaxAt));
  put<T>(s, kEdxAt, static_cast<T>(value >> (kBits<T> - 1)));
  FAST_NEXT;
}

// CLC, STC, CMC, CLD, STD, CLI.
enum FlagOp : unsigned { kClc, kStc, kCmc, kCld, kStd, kCli, kFlagOpCount };

template <class P, unsigned K>
CITCAT_FAST_HANDLER void change_flag(FAST_PARAMETERS) {
  constexpr std::uint32_t kIf = 0x200, kDf = 0x400;
  if constexpr (K == kCli) {
    if (!s->iopl_allows) {
      note_miss(s, 0, 0, false);
      FAST_MISS;
    }
    s->eflags &= ~kIf;
  } else if constexpr (K == kCld) {
    s->eflags &= ~kDf;
  } else if constexpr (K == kStd) {
    s->eflags |= kDf;
  } else {
    const std::uint32_t cf = K == kClc   ? 0
                             : K == kStc ? LazyFlags::kCarry
                                         : ~fc & LazyFlags::kCarry;
    fc = make_carries(cf, overflow_bit(fc), fc & LazyFlags::kHalf);
  }
  FAST_NEXT;
}
/// Ends its block, and the run: interrupts are held off until the next instruction is done.
template <class P>
CITCAT_FAST_HANDLER void set_interrupt_flag(FAST_PARAMETERS) {
  if (!s->iopl_allows) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  s->eflags |= 0x200;
  s->set_interrupts = true;
  if constexpr (P::kExact) {
    if (!s->block->counts_shifts) s->untold = s->untold + s->block->flags;
  }
  s->next = op->immediate;
  s->exit_link = 1;
  s->save(Exit::branch, op, area, {fz, fs, fc});
}
template <class P>
CITCAT_FAST_HANDLER void load_ah(FAST_PARAMETERS) {  // LAHF
  const std::uint32_t flags = LazyFlags{fz, fs, fc}.eflags() | 2;
  put<std::uint8_t>(s, kAhAt, static_cast<std::uint8_t>(flags & 0xd7));
  FAST_NEXT;
}
template <class P>
CITCAT_FAST_HANDLER void store_ah(FAST_PARAMETERS) {  // SAHF
  const std::uint32_t overflow = overflow_bit(fc);
  const LazyFlags flags = LazyFlags::from(get<std::uint8_t>(s, kAhAt));
  fz = flags.z;
  fs = flags.s;
  fc = make_carries(flags.c & LazyFlags::kCarry, overflow, flags.c & LazyFlags::kHalf);
  FAST_NEXT;
}
/// MOV r, Sreg: of 32 bits it clears the upper half.
template <class P, class T>
CITCAT_FAST_HANDLER void read_selector(FAST_PARAMETERS) {
  put<T>(s, op->a, T{s->selectors[op->segment]});
  FAST_NEXT;
}

}  // namespace citcat::fast
