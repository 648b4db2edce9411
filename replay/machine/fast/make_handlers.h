#pragma once
// Fills in the tables of handlers. Private to the files that each hold some of them
// (handlers_*.cc), because one file with all would take long to compile.
//
// There is a handler for each operation, size and kind of operand (handlers_*.h). A handler changes
// nothing until everything that it accesses has been found, so that it can be started again, or the
// instruction left to the engine (miss()). Flags are those of the engine, undefined ones included
// (QEMU's cc_helper_template.h has their values by behaviour; bit scans and tests follow
// x86/undefined_flags.h).

#include "replay/machine/fast/handler_parts.h"
#include "replay/machine/fast/handlers_arithmetic.h"
#include "replay/machine/fast/handlers_bits.h"
#include "replay/machine/fast/handlers_branch.h"
#include "replay/machine/fast/handlers_stack.h"
#include "replay/machine/fast/handlers_vectors.h"

namespace citcat::fast {

template <class A>
void add_accesses(HandlerTable& t) {
  add_arithmetic<A>(t);
  add_bits<A>(t);
  add_stack<A>(t);
  add_vectors<A>(t);
}

template <AccessNotes kNotes, bool kExact>
void HandlersOf<kNotes, kExact>::add_memory(HandlerTable& table, bool bits64) {
  if (bits64) {
    add_accesses<AccessPolicy<kNotes, kExact, true>>(table);
  } else {
    add_accesses<AccessPolicy<kNotes, kExact, false>>(table);
  }
}

template <AccessNotes kNotes, bool kExact>
void HandlersOf<kNotes, kExact>::add_flow(HandlerTable& table, Keep keep, bool bits64) {
  for_each_number<kKeeps>([&](auto number) {
    constexpr auto kKeep = static_cast<Keep>(number.value);
    constexpr bool kIsUsed = !kExact || kKeep != Keep::stores_trail;
    if constexpr (notes_for(kKeep) == kNotes && kIsUsed) {
      if (keep == kKeep && bits64) add_ends<FlowPolicy<kKeep, kExact, true>>(table);
      if (keep == kKeep && !bits64) add_ends<FlowPolicy<kKeep, kExact, false>>(table);
    }
  });
}

}  // namespace citcat::fast
