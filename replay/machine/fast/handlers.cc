// The result of a handler when an access is not found, and the table of handlers for each policy.

#include <array>
#include <cstddef>
#include <utility>

#include "replay/machine/execution_path.h"
#include "replay/machine/fast/handler_parts.h"
#include "replay/machine/fast/handler_policy.h"

namespace citcat {

bool has_fast_tier() { return true; }

}  // namespace citcat

namespace citcat::fast {

namespace {

/// Stands after an operation that is made alone.
CITCAT_FAST_HANDLER void stop_alone(FAST_PARAMETERS) {
  s->save(Exit::branch, op, area, {fz, fs, fc});
}

/// Makes a store that goes to code, and goes on if the block is still what is in memory.
CITCAT_FAST_HANDLER void make_alone(FAST_PARAMETERS) {
  s->alone[0] = *op;
  s->alone[1] = Op{};
  s->alone[1].handler = stop_alone;
  s->one_op = op;
  s->alone[0].handler(s->alone.data(), s, area, fz, fs, fc);
  s->one_op = nullptr;
  const bool made = s->at == &s->alone[1];
  const bool valid = s->resolver->store_made(*s);
  if (!made) {
    s->at = op;
    return;
  }
  if (!valid) {
    s->save(Exit::patched, op + 1, area, s->flags);
    return;
  }
  return op[1].handler(op + 1, s, area, s->flags.z, s->flags.s, s->flags.c);
}

}  // namespace

CITCAT_FAST_HANDLER void miss(FAST_PARAMETERS) {
  switch (s->resolver->resolve(*s, op)) {
    case MissResolver::Answer::again:
      return op->handler(op, s, area, fz, fs, fc);
    case MissResolver::Answer::alone:
      return make_alone(op, s, area, fz, fs, fc);
    case MissResolver::Answer::careful:
      break;
  }
  s->save(Exit::careful, op, area, {fz, fs, fc});
}

namespace {

template <Keep kKeep, bool kExact, bool kWide>
const HandlerTable& table_of() {
  using Parts = HandlersOf<notes_for(kKeep), kExact>;
  static const HandlerTable kTable = [] {
    HandlerTable t{};
    add_registers(t);
    Parts::add_memory(t, kWide);
    Parts::add_flow(t, kKeep, kWide);
    return t;
  }();
  return kTable;
}

using FindTable = const HandlerTable& (*)();
/// By what is kept, whether exact, and mode.
template <std::size_t... I>
constexpr std::array<FindTable, sizeof...(I)> all_tables(std::index_sequence<I...>) {
  return {table_of<static_cast<Keep>(I / 4), I / 2 % 2 != 0, I % 2 != 0>...};
}

}  // namespace

const HandlerTable& handlers(Policy policy, bool bits64) {
  static constexpr auto kTables = all_tables(std::make_index_sequence<kKeeps * 4>{});
  const auto keep = static_cast<std::size_t>(policy.keep);
  return kTables[keep * 4 + (policy.exact ? 2 : 0) + (bits64 ? 1 : 0)]();
}

}  // namespace citcat::fast
