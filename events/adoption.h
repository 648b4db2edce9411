#pragma once
// Results that implementations of the processor compute differently, as the captured one had them:
// a replay without the evidence needs to be told.

#include <cstdint>
#include <vector>

#include "events/address.h"
#include "events/position.h"

namespace citcat {

class ByteReader;
class ByteWriter;

/// A byte of memory that was taken over from the bus.
struct Adoption {
  Position position;     ///< of the replay at that moment
  bool at_store = true;  ///< when the byte was stored; else once the instruction had completed
  PhysAddr address;
  std::uint8_t value = 0;
  bool operator==(const Adoption&) const = default;
};

/// In the order of positions. Throws FormatError; allocates no more than the payload justifies.
void write_adoptions(ByteWriter& out, const std::vector<Adoption>& adoptions);
std::vector<Adoption> read_adoptions(ByteReader& in);

}  // namespace citcat
