#pragma once
// Registers, memory and conditions, as handlers use them.

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/handler_policy.h"
#include "replay/machine/fast/handler_table.h"
#include "replay/machine/fast/lazy_alu.h"

namespace citcat::fast {

template <class T>
inline T get(const State* s, std::uint8_t at) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::uint8_t*>(s->r.data()) + at, sizeof value);
  return value;
}
/// A value of 32 bits clears the upper half, as in 64-bit mode; in other modes that half is zero.
template <class T>
inline void put(State* s, std::uint8_t at, T value) {
  const std::conditional_t<sizeof(T) == 4, std::uint64_t, T> whole = value;
  std::memcpy(reinterpret_cast<std::uint8_t*>(s->r.data()) + at, &whole, sizeof whole);
}
inline constexpr std::uint8_t kEaxAt = 0, kAhAt = 1, kEcxAt = 8, kEdxAt = 16, kEbxAt = 24,
                              kEspAt = 32, kEbpAt = 40;
/// An offset in a segment, or a linear address.
template <class A>
using Offset = std::conditional_t<A::kWide, std::uint64_t, std::uint32_t>;
/// Bits of an offset after an address-size prefix (Op::kNarrow).
template <class A>
inline constexpr Offset<A> kNarrowMask = A::kWide ? 0xffffffff : 0xffff;

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
template <class A, std::uint8_t kSize, bool kWrite>
inline Place find(State* s, Offset<A> linear) {
  const std::size_t index = linear >> 12 & (kTlbEntries - 1);
  const TlbEntry& entry = kWrite ? s->writes[index] : s->reads[index];
  if (((linear + kSize - 1) & ~Offset<A>{kPageMask}) != static_cast<Offset<A>>(entry.tag))
      [[unlikely]]
    return note_miss(s, linear, kSize, kWrite);
  if constexpr (A::kExact && !kWrite) {
    if (!s->defined_reads[index]->all(linear & kPageMask, kSize)) [[unlikely]]
      return note_miss(s, linear, kSize, false);
  }
  return {reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(entry.host) + linear),
          linear};
}

template <class A, bool kFlat>
inline Offset<A> offset_of(const Op* op, const State* s) {
  const auto index = get<Offset<A>>(s, op->index);
  const Offset<A> offset = get<Offset<A>>(s, op->base) + static_cast<Offset<A>>(op->displacement) +
                           (index << (kFlat ? op->shift : op->shift & 3));
  if constexpr (kFlat) return offset;
  return (op->shift & Op::kNarrow) != 0 ? offset & kNarrowMask<A> : offset;
}

/// `kSize` bytes at an offset in a segment that has a base, or a limit.
template <class A, std::uint8_t kSize, bool kWrite>
inline Place find_in(State* s, unsigned segment, Offset<A> offset) {
  if constexpr (!A::kWide) {
    const std::int64_t limit = kWrite ? s->write_limit[segment] : s->read_limit[segment];
    if (std::int64_t{offset} + kSize - 1 > limit) [[unlikely]]
      return note_miss(s, 0, 0, kWrite);
  }
  return find<A, kSize, kWrite>(s, static_cast<Offset<A>>(s->segment_base[segment]) + offset);
}

/// The memory operand.
template <class A, bool kFlat, std::uint8_t kSize, bool kWrite>
inline Place find_operand(const Op* op, State* s) {
  const Offset<A> offset = offset_of<A, kFlat>(op, s);
  if constexpr (kFlat) return find<A, kSize, kWrite>(s, offset);
  return find_in<A, kSize, kWrite>(s, op->segment, offset);
}

inline constexpr unsigned kStackSegment = 2;

/// What lies at `pointer` on the stack.
template <class A, bool kFlat, std::uint8_t kSize, bool kWrite>
inline Place find_on_stack(State* s, Offset<A> pointer) {
  if constexpr (kFlat) return find<A, kSize, kWrite>(s, pointer);
  return find_in<A, kSize, kWrite>(s, kStackSegment, pointer & s->stack_mask);
}
template <class A, bool kFlat>
inline void set_stack_pointer(State* s, Offset<A> pointer) {
  if constexpr (kFlat) {
    put(s, kEspAt, pointer);
  } else {
    const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
    put(s, kEspAt, (esp & ~s->stack_mask) | (pointer & s->stack_mask));
  }
}

/// An effective address of the operation: the first, or one `further` bytes after it. Outside
/// 64-bit mode the upper halves of addresses stay 0 in the area (BlockRunner::area()), and records
/// have none.
template <class A>
inline void tell(const Op* op, std::uint8_t* area, std::uint64_t linear, std::size_t further = 0) {
  const auto address = static_cast<Offset<A>>(linear);
  if constexpr (A::kArea) std::memcpy(area + op->slot + further, &address, sizeof address);
}

/// Notes an access of the page in `frame`, and the value there.
template <class T, bool kWrite>
inline void log(const Op* op, State* s, const Place& at, std::uint64_t frame, T value) {
  DataReference& access = s->log[s->logged++];
  access.physical = PhysAddr{frame | (at.linear & kPageMask)};
  access.linear = LinearAddr{at.linear};
  access.value = value;
  access.size = sizeof(T);
  const std::uint32_t number = s->block->number_of(s->one_op != nullptr ? s->one_op : op);
  access.instruction = static_cast<std::uint16_t>(number);
  access.kind = AccessKind::data;
  access.write = kWrite;
}

template <class A, class T>
inline T read(const Op* op, State* s, const Place& at) {
  const T value = load<T>(at.host);
  if constexpr (A::kLog) {
    log<T, false>(op, s, at, s->read_frames[at.linear >> 12 & (kTlbEntries - 1)], value);
  }
  return value;
}

/// Reads an operand that was found for a write and will be written too.
template <class A, class T>
inline T read_to_write(const Op* op, State* s, const Place& at) {
  const T value = load<T>(at.host);
  if constexpr (A::kLog) {
    log<T, false>(op, s, at, s->write_frames[at.linear >> 12 & (kTlbEntries - 1)], value);
  }
  return value;
}
/// It was read before it is defined.
template <class A, class T>
inline bool may_read_to_write(State* s, const Place& at) {
  if constexpr (A::kExact) {
    const std::size_t index = at.linear >> 12 & (kTlbEntries - 1);
    if (!s->defined_writes[index]->all(at.linear & kPageMask, sizeof(T))) [[unlikely]] {
      note_miss(s, at.linear, sizeof(T), true);
      return false;
    }
  }
  return true;
}

/// For who waits for a store, or asks for stores alone.
template <class A, class T>
inline void note_store(State* s, const Place& at, T value) {
  if constexpr (A::kExact) {
    // No access goes from one frame into another, and no frame lies in two places: those that begin
    // before the trap and end in it are the only ones to be noticed besides.
    const auto behind = reinterpret_cast<std::uintptr_t>(at.host) -
                        reinterpret_cast<std::uintptr_t>(s->trap) + (sizeof(T) - 1);
    if (behind < s->trap_bytes + (sizeof(T) - 1)) s->trapped = true;
  } else {
    const std::uint64_t frame = s->write_frames[at.linear >> 12 & (kTlbEntries - 1)];
    s->keep_store({PhysAddr{frame | (at.linear & kPageMask)}, value, sizeof(T)});
  }
}

template <class A, class T>
inline void write(const Op* op, State* s, const Place& at, T value) {
  [[maybe_unused]] const std::size_t index = at.linear >> 12 & (kTlbEntries - 1);
  if constexpr (A::kStores) note_store<A, T>(s, at, value);
  if constexpr (A::kExact) {
    const std::size_t offset = at.linear & kPageMask;
    ByteMask& defined = *s->defined_writes[index];
    if constexpr (A::kLog) {
      s->overwritten[s->logged] = {load<T>(at.host),
                                   static_cast<std::uint8_t>(defined.bits(offset, sizeof(T)))};
    }
    defined.set(offset, sizeof(T));
  }
  if constexpr (A::kLog) log<T, true>(op, s, at, s->write_frames[index], value);
  store<T>(at.host, value);
}

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
  if constexpr (kKind == 7) result = fz == 0 || static_cast<std::int32_t>(fs ^ fc ^ fc << 1) < 0;
  return result != ((C & 1) != 0);
}

}  // namespace citcat::fast
