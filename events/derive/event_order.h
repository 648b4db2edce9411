#pragma once

#include "events/recording.h"

namespace citcat {

/// Puts small numbers in place of the transactions that showed interrupts and external writes, in
/// the same order: where a capture is no longer at hand they only tell what came first at one
/// position.
void number_events_by_order(Recording& recording);

}  // namespace citcat
