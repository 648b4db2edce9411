#pragma once
// Random bus traffic as transactions: what the generators draw and the decoders must find again.

#include <vector>

#include "events/bus_transaction.h"
#include "tests/unit/capture/bus/wave.h"

namespace citcat::test {

struct TrafficRules {
  unsigned bus_bytes;  ///< a single transfer stays within an aligned word of these
  std::uint32_t address_mask;
  unsigned line_bytes = 0;   ///< 0: no line fills
  bool line_writes = false;  ///< write-backs of lines
  bool flushes = false;      ///< INVD and WBINVD show
  bool shutdowns = true;
  bool halts = true;
  bool uncacheable_reads = false;  ///< single memory reads carry kUncacheable
  /// Branch trace messages: targets known to this many bytes, 0: none.
  unsigned branch_targets = 0;
};

std::vector<BusTransaction> random_traffic(const TrafficRules& rules, Random& random);

}  // namespace citcat::test
