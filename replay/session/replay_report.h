#pragma once
// How a replay ended: what it did, and where it differed from the evidence, if it did.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/address.h"
#include "events/position.h"

namespace citcat {

/// The first point where replay and evidence cannot both be right.
struct Divergence {
  Position position;
  std::uint64_t transaction = ~std::uint64_t{0};  ///< in the capture; all ones if none
  std::string reason;
  std::string expected, found;
  std::vector<std::string> causes;
  std::optional<BusTransaction> shown = std::nullopt;  ///< the transaction, if one was compared
  /// The linear address of the instruction at `position`; nullopt at the end of the replay, or if
  /// the difference is not about an instruction.
  std::optional<LinearAddr> linear = std::nullopt;
};
/// "instruction 5+2 at 000f0100": position and linear address.
std::string place_text(const Divergence& divergence);

struct ReplayReport {
  enum class End : std::uint8_t { complete, stopped, diverged };
  End end = End::complete;
  std::uint64_t instructions = 0;
  std::uint64_t interrupts = 0;  ///< from outside
  std::uint64_t exceptions = 0;  ///< including software interrupts
  std::uint64_t io_reads = 0;
  std::uint64_t io_writes = 0;
  std::uint64_t external_writes = 0;
  std::optional<Divergence> divergence;
  /// For a complete run: the capture ends within the recording's last instruction, which would read
  /// memory that no evidence defines. That instruction is not executed.
  std::optional<Divergence> cut;
};
const char* replay_end_name(ReplayReport::End end);

}  // namespace citcat
