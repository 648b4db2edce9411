#pragma once
// Finds SMBASE at an SMI that the monitor names: the processor then stores its state between SMBASE
// + FE00h and SMBASE + FFFFh, and fetches code at SMBASE + 8000h (Intel SDM vol. 3, 34.4 and 34.5).
// Unlike SmmEntryDetector this need not see all of the state, nor in the order that some processors
// save it in.

#include <cstdint>
#include <optional>

#include "events/bus_transaction.h"

namespace citcat {

class SmbaseSearch {
 public:
  void begin();
  bool active() const { return left_ != 0; }
  /// Takes the next transaction after the SMI; returns SMBASE at the handler's first fetch. Gives
  /// up where something else than a saved state is stored, where another interrupt comes, and after
  /// a while.
  std::optional<std::uint32_t> add(const BusTransaction& t);

 private:
  std::uint32_t left_ = 0;                  ///< transactions to look at
  std::uint32_t lowest_ = 0, highest_ = 0;  ///< of the bytes stored; none where lowest is higher
};

}  // namespace citcat
