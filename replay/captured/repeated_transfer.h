#pragma once
// Finds transfers that a capture contains twice.
//
// Once a line has been filled, or written back, or a piece of code fetched, the same instruction
// does not move it again, unless something else took it away meanwhile: another line in its place,
// a store to it, a jump. All of these show on the bus, or it is another instruction. If a transfer
// comes again with nothing in between, it has been captured twice.

#include <cstdint>

#include "events/bus_transaction.h"

namespace citcat {

class RepeatedTransfer {
 public:
  static constexpr const char* kReason =
      "the capture shows a transfer twice, and nothing between that would cause it again";

  /// `t` is what the capture shows next. True where it moves what has just been moved. Only where
  /// memory traffic is counted, by instructions and by iterations.
  bool observe(const BusTransaction& t);

 private:
  /// What was moved last: transfers of the same sort one after the other, as parts of a line are.
  bool moving_ = false;
  BusOp op_ = BusOp::code_read;
  bool line_ = false;
  Position position_;
  PhysAddr begin_;
  std::uint32_t bytes_ = 0;
};

}  // namespace citcat
