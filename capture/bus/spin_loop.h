#pragma once
// A full analyser interrupts the machine, and the driver spins until the analyser has been emptied.

#include <cstddef>
#include <deque>

#include "events/bus_transaction.h"

namespace citcat {

/// Length of the tail of `traffic` in which the same few transactions come again and again; 0 where
/// there is none.
std::size_t repeating_tail(const std::deque<BusTransaction>& traffic);

}  // namespace citcat
