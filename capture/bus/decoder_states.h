#pragma once
// State listings: an analyser that was clocked by the bus shows one line for each completed cycle,
// with address, data and status together. Every sample is a transaction.

#include <span>

#include "capture/bus/bus_decoder.h"

namespace citcat {

/// A bus such as "486-states" for each processor bus for which such listings exist.
std::span<const BusDescription> state_buses();

}  // namespace citcat
