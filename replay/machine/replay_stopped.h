#pragma once
// Why a replay ends before its recording does.

#include <cstdint>
#include <optional>
#include <string>

#include "events/recording.h"

namespace citcat {

/// The replay cannot go on: it needs something no evidence gives, or did something the evidence
/// denies. Thrown through Machine::run(); the machine stays at the position it names.
struct ReplayStopped {
  Position position;
  std::string reason;
  std::uint64_t transaction = ~std::uint64_t{0};  ///< of the capture, where one is concerned
  std::string expected = {}, found = {};
  std::optional<BusTransaction> shown = std::nullopt;  ///< that transaction, where it was compared
};

}  // namespace citcat
