#pragma once
// A full analyser interrupts the machine, whose driver then spins until the analyser was emptied.

#include <cstddef>
#include <deque>

#include "events/bus_transaction.h"

namespace citcat {

/// Length of the tail of `traffic` in which the same few transactions come again and again; 0 where
/// there is none.
std::size_t repeating_tail(const std::deque<BusTransaction>& traffic);

}  // namespace citcat
