#pragma once
// The accesses to memory and ports that the replay of one processor makes around a moment, whatever
// the bus showed. They say whether a transaction can be the processor's own.

#include <cstdint>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/bus_transaction.h"
#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

struct ReplayedAccess {
  BusOp op = BusOp::data_read;  ///< code_read, data_read, data_write, io_read or io_write
  PhysAddr address;             ///< or port
  std::uint32_t size = 0;
  Position position;
  LinearAddr instruction;   ///< that is under way; 0 where it did not complete
  std::uint32_t value = 0;  ///< of a write to memory: its first four bytes
};

/// Accesses within [from, to], in their order; at most `most`, the last ones.
std::vector<ReplayedAccess> replayed_accesses(const RecordingFile& file, Position from, Position to,
                                              std::size_t most);

/// Whether the access can be what the bus shows as `t`: of the same kind, and of the same bytes or
/// of the line.
bool is_shown_by(const ReplayedAccess& access, const BusTransaction& t, std::uint32_t line_bytes);

}  // namespace citcat
