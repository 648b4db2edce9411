#pragma once
// Disagreements between several processors and their bus that a replay of one of them alone cannot
// find: something that another processor did, a line that became a processor's own without anybody
// seeing it, another order.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/diagnose/processors/bus_change.h"
#include "replay/diagnose/processors/bus_trouble.h"

namespace citcat {

enum class MachineCauseKind : std::uint8_t {
  wrong_processor,       ///< another processor did it
  missing_invalidation,  ///< the capture lacks that a shared line became a processor's own
  extra_invalidation,    ///< it has one that did not happen
  wrong_order,           ///< two things came the other way round
  wrong_line,            ///< an invalidation was of another line
  wrong_fill,            ///< a line came otherwise: shared or not (HIT#), for a store or not
  missing_message,       ///< the capture lacks a message of the APIC bus that a processor asked for
  extra_message,         ///< it has one that no processor sent
  wrong_message,         ///< it has another one than the processor asked for
  captured_read,         ///< a read was captured wrongly
  missing_write_back,    ///< the capture lacks that a processor wrote a line back
  missing_command,       ///< it lacks that a processor wrote its command register for a message
};
/// As in JSON, e.g. "wrong_processor".
std::string_view machine_cause_name(MachineCauseKind kind);

struct MachineCause {
  MachineCauseKind kind = MachineCauseKind::wrong_processor;
  std::string text;  ///< for people, one line
  BusChange change;  ///< that tries it
  /// What it is about, for those who look it up.
  std::uint8_t processor = 0;
  std::optional<std::uint64_t> transaction;
  std::optional<Position> position;
  PhysAddr address;
  double price = 1;  ///< how much it asks one to believe
};

/// Causes worth trying for a trouble, the likeliest first.
std::vector<MachineCause> machine_causes(const std::vector<RecordingFile>& files,
                                         const BusTrouble& trouble,
                                         const BusNeighbourhood& neighbourhood);

}  // namespace citcat
