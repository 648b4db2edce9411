#pragma once
// A change of what processors did on the bus that they share, to be tried.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "events/bus_transaction.h"
#include "events/position.h"
#include "events/processors/bus_note.h"
#include "events/processors/shared_bus.h"

namespace citcat {

/// One event of a shared bus: a transaction by its processor and number, or a note by its number
/// among the notes of the machine.
struct BusPlace {
  std::uint8_t processor = 0;
  std::uint64_t index = kNoTransaction;
  bool is_note = false;
  bool operator==(const BusPlace&) const = default;
};

struct BusChange {
  enum class Kind : std::uint8_t {
    give,  ///< `what` was another processor's: `to`, at `position` where that is known
    drop,  ///< `what` was not
    hold,  ///< `what`, and what its processor did until then, came right after `behind`
    add,   ///< `added`, or else `note`, came right after `what`
    turn,  ///< `flags` of `what` were the other way round
    line,  ///< `what` was of the line of `note`
    data,  ///< `what` had the data of `note`
    read,  ///< `what` showed `bytes`
  };
  Kind kind = Kind::give;
  BusPlace what;
  std::uint8_t parts = 1;  ///< transactions: a line may go in two
  std::uint8_t to = 0;
  std::optional<Position> position;
  BusPlace behind;
  BusNote note;
  std::uint16_t flags = 0;
  std::vector<SharedEvent> added;  ///< transactions
  std::array<std::uint8_t, kMaxTransactionBytes> bytes{};
};

}  // namespace citcat
