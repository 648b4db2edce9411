#pragma once

#include "events/recording.h"

namespace citcat {

/// Puts small numbers in place of the transactions that showed interrupts and external writes, in
/// the same order: without the capture, they only say what came first at one position.
void number_events_by_order(Recording& recording);

}  // namespace citcat
