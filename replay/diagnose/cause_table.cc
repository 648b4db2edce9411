#include "replay/diagnose/cause_table.h"

#include <fmt/format.h>

#include <array>

#include "formats/io/log.h"
#include "replay/diagnose/cause_generators.h"

namespace citcat {
namespace {

const Logger explain_logger("explain");

// Causes of equal price are tried in the order of these rows.
constexpr std::array kRows{
    CauseRow{"lone changes", lone_changes},       CauseRow{"captured writes", captured_writes},
    CauseRow{"write addresses", write_addresses}, CauseRow{"missing writes", missing_writes},
    CauseRow{"extra writes", extra_writes},       CauseRow{"interrupts", interrupts_nearby},
    CauseRow{"read values", read_values},         CauseRow{"read code", read_code},
    CauseRow{"stale code", stale_code},           CauseRow{"port reads", port_reads},
    CauseRow{"internal values", internal_values}, CauseRow{"uncertain results", uncertain_results},
    CauseRow{"register bits", register_bits},     CauseRow{"solved registers", solved_registers},
    CauseRow{"solved reads", solved_reads},       CauseRow{"solved port reads", solved_port_reads},
    CauseRow{"unseen SMI", unseen_smi},
};

}  // namespace

std::span<const CauseRow> cause_table() { return kRows; }

CauseList find_causes(const CauseContext& context) {
  CauseList list;
  for (const CauseRow& row : cause_table()) {
    const std::size_t before = list.causes.size();
    row.generate(context, list);
    if (explain_logger.at(LogLevel::debug)) {
      explain_logger.write(fmt::format("{}: {} causes", row.name, list.causes.size() - before));
    }
  }
  return list;
}

}  // namespace citcat
