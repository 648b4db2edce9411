// What handlers come to where an access is not found, and which table of them serves a policy.

#include "replay/machine/fast/handler_policy.h"
#include "replay/machine/fast/policy_tables.h"

namespace citcat::fast {

namespace {

/// Stands behind an operation that is made alone.
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

const HandlerTable& handlers(Policy policy, bool bits64) {
  switch (policy) {
    case Policy::plain:
      return plain_handlers(bits64);
    case Policy::traced:
      return traced_handlers(bits64);
    case Policy::told:
      return told_handlers(bits64);
    case Policy::counted:
      return counted_handlers(bits64);
    case Policy::trailed:
      return trailed_handlers(bits64);
    case Policy::stored:
      return stored_handlers(bits64);
    case Policy::stored_trailed:
      return stored_trailed_handlers(bits64);
    case Policy::referenced:
      return referenced_handlers(bits64);
    case Policy::exact:
      return exact_handlers(bits64);
    case Policy::exact_trapped:
      return exact_trapped_handlers(bits64);
    case Policy::exact_traced:
      return exact_traced_handlers(bits64);
    case Policy::exact_counted:
      return exact_counted_handlers(bits64);
    case Policy::exact_trailed:
      return exact_trailed_handlers(bits64);
    case Policy::exact_told:
      return exact_told_handlers(bits64);
    case Policy::logged:
      break;
  }
  return logged_handlers(bits64);
}

}  // namespace citcat::fast
