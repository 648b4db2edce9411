#pragma once
// State listings: an analyser that was clocked by the bus shows one line for each completed cycle,
// with address, data and status together. Every sample is a transaction.

#include <span>

#include "capture/bus/bus_decoder.h"

namespace citcat {

/// A bus "486-states" for each processor bus of which such listings are met.
std::span<const BusDescription> state_buses();

}  // namespace citcat
