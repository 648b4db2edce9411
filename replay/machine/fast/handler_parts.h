#pragma once
// The parts that tables of handlers are put together from.

#include "replay/machine/fast/handler_table.h"

namespace citcat::fast {

/// Those of one kind of access. Each is instantiated in a file of its own.
template <AccessNotes kNotes, bool kExact>
struct HandlersOf {
  static MemoryHandlers memory(bool bits64);
  /// `keep` is one that needs this kind of access.
  static FlowHandlers flow(Keep keep, bool bits64);
};

RegisterHandlers register_handlers();

}  // namespace citcat::fast
