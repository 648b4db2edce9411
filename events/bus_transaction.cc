#include "events/bus_transaction.h"

namespace citcat {

namespace {

constexpr std::array<std::string_view, kBusOpCount> kOpNames{
    "code_read", "data_read", "data_write", "io_read", "io_write", "interrupt_acknowledge", "halt",
    "shutdown",  "flush",     "reset",      "nmi",     "smi",      "instruction_start",
};

}  // namespace

std::string_view bus_op_name(BusOp op) {
  const auto number = static_cast<std::size_t>(op);
  return number < kOpNames.size() ? kOpNames[number] : "unknown";
}

}  // namespace citcat
