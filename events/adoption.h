#pragma once
// Results that models of the processor compute differently, with the values of the captured
// processor. A replay without the evidence needs them.

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

class ByteReader;
class ByteWriter;

/// A byte of memory that was adopted from the bus.
struct Adoption {
  Position position;     ///< position of the replay at that moment
  bool at_store = true;  ///< at the store of the byte; else after the instruction completed
  PhysAddr address;
  std::uint8_t value = 0;
  bool operator==(const Adoption&) const = default;
};

/// The adoptions are in the order of positions. Throws FormatError; allocates no more than the
/// payload justifies.
void write_adoptions(ByteWriter& out, const std::vector<Adoption>& adoptions);
std::vector<Adoption> read_adoptions(ByteReader& in);

}  // namespace citcat
