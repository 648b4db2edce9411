#pragma once
// One replay from a guessed state, for working out the registers of a processor in protected or
// long mode: how far it agrees with the bus, what handlers saved on the way, and what the bus shows
// where the two diverge.

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "events/recording.h"
#include "replay/infer/places/handler_saves.h"
#include "replay/infer/registers/page_map.h"
#include "replay/infer/registers/recovery_rounds.h"
#include "replay/verify/bus_order_check.h"

namespace citcat {

/// What the bus shows being stored from a register that nothing changed since the interrupt.
struct Saved {
  SavedRegister where;
  std::uint64_t value = 0;
  std::uint64_t transaction = 0;
};

inline constexpr std::size_t kFxBytes = 512;  ///< of an FXSAVE image
using FxImage = std::array<std::uint8_t, kFxBytes>;

/// An FXSAVE image, or one of XSAVE, as the bus shows it.
struct SavedFx {
  FxImage image{};
  bool whole = false;  ///< nothing changed any of it before; else MXCSR_MASK alone counts
  std::uint64_t transaction = 0;
};
inline constexpr std::size_t kMxcsrMask = 28;  ///< SDM vol. 1, table 10-2

/// An image that the replay stores differently from the bus shows.
struct DifferentFx {
  std::bitset<kFxBytes> stored;  ///< bytes that the bus shows being stored
  FxImage shown{}, replayed{};
  bool may_leave_out = false;  ///< as XSAVEOPT does: the replay need not store all that is shown
  std::uint64_t transaction = 0;
};

/// A page-table entry that no evidence defines: the processor had it in its TLB.
struct TableEntry {
  PhysAddr at;
  std::uint64_t value = 0;
  unsigned bytes = 4;

  std::array<std::uint8_t, 8> data() const {
    std::array<std::uint8_t, 8> data{};
    for (unsigned i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(value >> (8 * i));
    return data;
  }
};

/// How far a replay with some values agrees with the bus, and what was seen there.
struct RecoveryOutcome : RecoveryProgress {
  std::uint64_t last_agreed = 0;  ///< transaction
  std::vector<Saved> saved;
  std::optional<SavedFx> fx;
  std::optional<DifferentFx> different_fx;  ///< what differs
  std::vector<LinearAddr> addresses;        ///< of what differs
  std::vector<PhysAddr> shown;              ///< of what the bus shows in its place
  PageMap pages;                            ///< where it differs
  AddressSpaceId cr3 = 0;                   ///< there
  std::optional<LinearAddr> page_fault;     ///< that the bus does not show
  bool undefined = false;                   ///< an instruction was #UD there
};

struct RecoveryTrial {
  bool keeps_stack = false;  ///< the first interrupt does not change SS
  bool strict = false;  ///< nothing may be read that no evidence defines; else it reads as zero
  std::optional<TableEntry> entry;  ///< that memory holds besides
  TimeBudget* time = nullptr;       ///< when it is spent the replay ends: no_progress()
};

/// Replays `recording` from its initial state, as guessed, up to the first interrupt without a
/// place. Its ram_bytes must reach over all memory that the capture shows.
RecoveryOutcome run_trial(const Recording& recording, const EvidenceSource& evidence,
                          const RecoveryTrial& trial);

}  // namespace citcat
