#pragma once
// Which code on the status or cycle-definition pins asks for which bus cycle: one table for each
// processor.

#include <cstdint>

#include "events/bus_transaction.h"

namespace citcat {

/// What the cycle definition pins ask for.
enum class CycleKind : std::uint8_t {
  none,  ///< a code the processor does not use
  interrupt_acknowledge,
  special,  ///< halt, shutdown, flush: distinguished by address or byte enables
  io_read,
  io_write,
  code_read,
  data_read,
  data_write,
};

constexpr bool is_write(CycleKind kind) {
  return kind == CycleKind::io_write || kind == CycleKind::data_write;
}
constexpr bool is_memory(CycleKind kind) {
  return kind == CycleKind::code_read || kind == CycleKind::data_read ||
         kind == CycleKind::data_write;
}
constexpr BusOp op_of(CycleKind kind) {
  switch (kind) {
    case CycleKind::interrupt_acknowledge:
      return BusOp::interrupt_acknowledge;
    case CycleKind::io_read:
      return BusOp::io_read;
    case CycleKind::io_write:
      return BusOp::io_write;
    case CycleKind::code_read:
      return BusOp::code_read;
    case CycleKind::data_read:
      return BusOp::data_read;
    default:
      return BusOp::data_write;
  }
}

/// S0, S1, S2 as bits 0 to 2 (Intel 8086 data sheet, table "Status"); 7 is no cycle.
constexpr CycleKind kStatus8086[8] = {CycleKind::interrupt_acknowledge,
                                      CycleKind::io_read,
                                      CycleKind::io_write,
                                      CycleKind::special,
                                      CycleKind::code_read,
                                      CycleKind::data_read,
                                      CycleKind::data_write,
                                      CycleKind::none};

/// S0#, S1#, M/IO#, COD/INTA# as bits 0 to 3 (80286 data sheet, table "80286 bus cycle status").
constexpr CycleKind kStatus286[16] = {CycleKind::interrupt_acknowledge,
                                      CycleKind::none,
                                      CycleKind::none,
                                      CycleKind::none,
                                      CycleKind::special,
                                      CycleKind::data_read,
                                      CycleKind::data_write,
                                      CycleKind::none,
                                      CycleKind::none,
                                      CycleKind::io_read,
                                      CycleKind::io_write,
                                      CycleKind::none,
                                      CycleKind::none,
                                      CycleKind::code_read,
                                      CycleKind::none,
                                      CycleKind::none};

/// W/R#, D/C#, M/IO# as bits 0 to 2 (386EX manual, table 6-2).
constexpr CycleKind kDefinition386[8] = {CycleKind::interrupt_acknowledge,
                                         CycleKind::none,
                                         CycleKind::io_read,
                                         CycleKind::io_write,
                                         CycleKind::code_read,
                                         CycleKind::special,
                                         CycleKind::data_read,
                                         CycleKind::data_write};

/// W/R#, D/C#, M/IO# as bits 0 to 2 (i486 data sheet, table "Bus cycle definition"; the same on the
/// Pentium). From memory of the manuals, to be corrected here if a part differs.
constexpr CycleKind kDefinition486[8] = {CycleKind::interrupt_acknowledge,
                                         CycleKind::special,
                                         CycleKind::io_read,
                                         CycleKind::io_write,
                                         CycleKind::code_read,
                                         CycleKind::none,
                                         CycleKind::data_read,
                                         CycleKind::data_write};

}  // namespace citcat
