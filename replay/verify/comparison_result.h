#pragma once
// The results of a comparison with the bus so far: what was compared and agreed, and what was
// adopted from the bus.

#include <cstdint>
#include <vector>

#include "events/adoption.h"
#include "events/bus_transaction.h"

namespace citcat {

struct CheckCount {
  std::uint64_t checked = 0;
  std::uint64_t equal = 0;
};

struct VerifyTotals {
  CheckCount writes;        ///< captured memory write transactions
  CheckCount write_backs;   ///< captured write-back transactions
  std::uint64_t reads = 0;  ///< captured reads, fetches and fills compared, all of them equal
  CheckCount io_reads, io_writes;
  CheckCount specials;        ///< halt, shutdown, flush
  CheckCount instructions;    ///< hardware instruction stream, prefixes not counted
  std::uint64_t adopted = 0;  ///< results taken over from the bus
  /// Changes by another bus master that turn over a single bit of memory, among others near them or
  /// accepted: devices do that, but it is also what a wrongly captured bit of a read looks like.
  std::uint64_t single_bit_changes = 0;
  std::uint64_t first_single_bit_change = kNoTransaction;  ///< transaction that showed it
  std::uint64_t evidence_bytes = 0;  ///< bytes of captured writes and write-backs compared
};

struct ComparisonResult {
  VerifyTotals totals;
  std::vector<Adoption> adoptions;             ///< every byte taken over
  std::uint64_t last_agreed = kNoTransaction;  ///< the captured transaction that agreed last
};

}  // namespace citcat
