#pragma once
// The interface of the corrector, which knows where memory must differ from the computed one.

#include <cstdint>

#include "events/adoption.h"
#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// Tells the machine which corrections are due; it makes them (Machine::correct()).
class Corrector {
 public:
  virtual ~Corrector() = default;
  /// Where the next one is due; the greatest position where none is left. Nothing at or after it
  /// runs as part of a block.
  virtual Position due() const = 0;
  /// The next correction if it is due right after the store at `now` of `size` bytes at `address`
  /// (as captured), else null. Returned once; valid until the next call.
  virtual const Adoption* after_store(PhysAddr address, std::size_t size, Position now) = 0;
  /// The same once the instruction or iteration at `now` is complete.
  virtual const Adoption* after_instruction(Position now) = 0;
};

}  // namespace citcat
