#pragma once
// Handlers of SSE instructions, which the host's unit executes (x86/host_vectors.h). If CR0 or CR4
// refuses them, an operand is not aligned or an exception comes up, the machine's unit executes
// them again and raises the exception.

#include <cstdint>
#include <type_traits>

#include "replay/machine/fast/handler_access.h"
#include "replay/machine/fast/row_filling.h"
#include "x86/host_vectors.h"

#define FAST_LEAVE return s->save(Exit::careful, op, area, {fz, fs, fc})

namespace citcat::fast {

/// Executes the operation on registers, and on `memory` if it has an operand there. Flags that it
/// sets are in State::flags. Returns false, with nothing changed, if the engine must execute it.
/// Defined in vector_operations.cc.
bool make_vector(const VectorForm& form, const Op* op, State* s, void* memory);

inline const VectorForm& vector_form(const Op* op) {
  return *reinterpret_cast<const VectorForm*>(op->immediate);
}

/// Only the judge receives an operand of 16 bytes as two of 8; all others receive one access.
template <class A, std::uint8_t kSize>
inline bool may_access(const VectorForm& form, const State* s, std::uint64_t linear) {
  if constexpr (A::kLog && kSize == 16) {
    if (s->tells_accesses) return false;
  }
  return (linear & form.misaligned) == 0;
}

CITCAT_FAST_HANDLER inline void vector_registers(FAST_PARAMETERS) {
  const VectorForm& form = vector_form(op);
  if (!make_vector(form, op, s, nullptr)) FAST_LEAVE;
  if (!form.writes_flags) FAST_NEXT;
  return op[1].handler(op + 1, s, area, s->flags.z, s->flags.s, s->flags.c);
}

template <class A, std::uint8_t kSize>
CITCAT_FAST_HANDLER void vector_load(FAST_PARAMETERS) {
  using T = std::conditional_t<kSize == 4, std::uint32_t, std::uint64_t>;
  const Place at = find_operand<A, false, kSize, false>(op, s);
  if (!at) FAST_MISS;
  const VectorForm& form = vector_form(op);
  if (!may_access<A, kSize>(form, s, at.linear) || !make_vector(form, op, s, at.host)) FAST_LEAVE;
  read<A, T>(op, s, at);
  if constexpr (A::kLog && kSize == 16) read<A, T>(op, s, {at.host + 8, at.linear + 8});
  tell<A>(op, area, at.linear);
  if (!form.writes_flags) FAST_NEXT;
  return op[1].handler(op + 1, s, area, s->flags.z, s->flags.s, s->flags.c);
}

template <class A, std::uint8_t kSize>
CITCAT_FAST_HANDLER void vector_store(FAST_PARAMETERS) {
  using T = std::conditional_t<kSize == 4, std::uint32_t, std::uint64_t>;
  const Place at = find_operand<A, false, kSize, true>(op, s);
  if (!at) FAST_MISS;
  const VectorForm& form = vector_form(op);
  std::uint8_t value[16];
  if (!may_access<A, kSize>(form, s, at.linear) || !make_vector(form, op, s, value)) FAST_LEAVE;
  write<A, T>(op, s, at, load<T>(value));
  if constexpr (kSize == 16) {
    write<A, T>(op, s, {at.host + 8, at.linear + 8}, load<T>(value + 8));
  }
  tell<A>(op, area, at.linear);
  FAST_NEXT;
}

inline void add_vector_registers(HandlerTable& t) { t[kVector].in_registers[0] = vector_registers; }

/// Observers that ask for stores alone get no plain stores of 16 bytes.
template <class A>
void add_vectors(HandlerTable& t) {
  using R = Reading<A>;
  set_rare(t[kVector + 1], operand_size(4), vector_load<R, 4>);
  set_rare(t[kVector + 1], operand_size(8), vector_load<R, 8>);
  set_rare(t[kVector + 1], 0, vector_load<R, 16>);
  set_rare(t[kVector + 2], operand_size(4), vector_store<A, 4>);
  set_rare(t[kVector + 2], operand_size(8), vector_store<A, 8>);
  if constexpr (A::kExact || !A::kStores) set_rare(t[kVector + 2], 0, vector_store<A, 16>);
}

}  // namespace citcat::fast
