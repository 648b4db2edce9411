#pragma once
// The parts that tables of handlers are put together from.

#include "replay/machine/fast/handler_table.h"

namespace citcat::fast {

/// Handlers of one kind of access. Each is instantiated in a file of its own.
template <AccessNotes kNotes, bool kExact>
struct HandlersOf {
  /// With memory operands.
  static void add_memory(HandlerTable& table, bool bits64);
  /// Those that end a block; `keep` is one that needs this kind of access.
  static void add_flow(HandlerTable& table, Keep keep, bool bits64);
};

/// Those that work on registers alone.
void add_registers(HandlerTable& table);

}  // namespace citcat::fast
