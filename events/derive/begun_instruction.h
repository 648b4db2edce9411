#pragma once
// Which transactions show that the instruction they count has begun.

#include "events/bus_transaction.h"

namespace citcat {

/// A write-back that another bus master, or a fetch, asks for comes before it: the processor may be
/// halted.
inline bool may_come_before_its_instruction(const BusTransaction& t) {
  return t.has(kSnoop) && t.position.iteration == 0;
}

}  // namespace citcat
