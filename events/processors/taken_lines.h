#pragma once
// Which lines the other processors on a bus took out of one processor's cache.

#include <cstdint>
#include <utility>

#include "events/processors/shared_bus.h"
#include "events/taken_line.h"

namespace citcat {

/// Whoever stores to a line makes it its own first: all other copies of it go (MESI: Intel SDM
/// vol. 3, 11.4).
class TakenLines {
 public:
  /// From the cache of `processor`.
  TakenLines(SharedBus bus, std::uint8_t processor) : bus_(std::move(bus)), processor_(processor) {}

  /// False after the last. Throws as SharedBus::next() does.
  bool next(TakenLine& out);

 private:
  SharedBus bus_;
  std::uint8_t processor_;
  std::uint64_t before_ = 0;  ///< number of the next transaction of `processor_`
};

}  // namespace citcat
