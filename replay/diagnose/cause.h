#pragma once
// A possible cause of a divergence, with the change of the recording that tries it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/hint.h"
#include "replay/diagnose/trial_run.h"

namespace citcat {

enum class CauseKind : std::uint8_t {
  captured_read,         ///< a bit of a memory read or fetch was captured wrongly
  captured_port_read,    ///< of a port read
  captured_write,        ///< of a memory write, or its address
  missing_write,         ///< the capture lacks a write
  extra_write,           ///< it has one that was none
  missing_interrupt,     ///< the capture lacks an interrupt
  extra_interrupt,       ///< it has one that was none
  interrupt_vector,      ///< the vector was captured wrongly
  interrupt_position,    ///< an interrupt came earlier or later
  external_write,        ///< another bus master wrote memory
  initial_register,      ///< the state dump is wrong or incomplete
  uncertain_result,      ///< undefined flags, x87 or SSE arithmetic: processors differ
  internal_value,        ///< RDTSC and its like
  missing_transactions,  ///< the capture lacks a stretch: only suspected, never tried
  wrong_start,           ///< the recording begins elsewhere than where the state holds: likewise
  stale_code,            ///< code that was overwritten after it had been prefetched
  emulator_difference,   ///< an emulator was recorded, which is no processor here: only suspected
};
/// As in JSON, e.g. "captured_read".
std::string_view cause_name(CauseKind kind);

struct Cause {
  CauseKind kind = CauseKind::captured_read;
  std::string text;         ///< for people, one line
  std::vector<Hint> hints;  ///< that make the recording what it would be
  TrialStart start;         ///< before what they change
  /// Where the change is first used, when `start` is further back: enough to see whether it
  /// explains the divergence at all.
  std::optional<TrialStart> near;
  /// How much it asks one to believe; 1: one bit captured wrongly, and nothing speaks against it.
  double price = 1;
};

/// The transaction the cause blames; all ones where none is.
inline std::uint64_t blamed_transaction(const Cause& cause) {
  return cause.hints.empty() ? ~std::uint64_t{0} : cause.hints.front().transaction;
}

/// The internal read whose value it blames: values of the same one exclude each other.
inline std::optional<std::uint64_t> blamed_internal_read(const Cause& cause) {
  if (cause.kind != CauseKind::internal_value || cause.hints.empty()) return std::nullopt;
  return cause.hints.front().number;
}

}  // namespace citcat
