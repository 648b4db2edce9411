#pragma once
// Transactions as a capture has them, for the tests of what is compared with them.

#include <algorithm>
#include <initializer_list>

#include "events/bus_transaction.h"

namespace citcat::test {

/// At instruction `at`.
inline BusTransaction counted(BusOp op, std::uint32_t address, std::uint8_t size, std::uint64_t at,
                              unsigned flags = 0) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = size;
  t.position = {at, 0};
  t.flags = static_cast<std::uint16_t>(flags | kPositionKnown);
  return t;
}

/// The same with its bytes, the low one first.
inline BusTransaction counted(BusOp op, std::uint32_t address,
                              std::initializer_list<std::uint8_t> bytes, std::uint64_t at,
                              unsigned flags = 0) {
  BusTransaction t = counted(op, address, static_cast<std::uint8_t>(bytes.size()), at, flags);
  std::copy(bytes.begin(), bytes.end(), t.data.begin());
  return t;
}

/// Of a capture that counts nothing.
inline BusTransaction uncounted(BusTransaction t) {
  t.flags = static_cast<std::uint16_t>(t.flags & ~unsigned{kPositionKnown});
  t.position = {};
  return t;
}

}  // namespace citcat::test
