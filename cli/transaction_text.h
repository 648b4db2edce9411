#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "events/bus_transaction.h"

namespace citcat {

/// A transaction as one line for people: index, clock, position, operation, address, data, flags.
/// Without `has_data` those of the transaction mean nothing and are left out. If `clock_hz` is
/// above 0, the clock is also given as a time in seconds.
std::string transaction_text(const BusTransaction& transaction, bool has_data = true,
                             double clock_hz = 0);
/// The titles above the columns of such lines.
std::string_view transaction_titles(double clock_hz = 0);
nlohmann::ordered_json transaction_json(const BusTransaction& transaction, bool has_data = true,
                                        double clock_hz = 0);

/// "12" or, inside a REP instruction, "12+3"; "-" when `known` is false.
std::string position_text(bool known, const Position& position);
/// Bytes as hexadecimal digits.
std::string bytes_text(std::span<const std::uint8_t> bytes);

}  // namespace citcat
