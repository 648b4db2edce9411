#pragma once
// The common part of all handlers of the fast tier: their parameters, and their policies.
//
// Handlers of registers alone are made once. Those that access memory are made for each
// AccessPolicy, and those that end a block for each FlowPolicy (policy.h).

#include <cstddef>
#include <cstdint>

#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/policy.h"

// Sanitizers would keep something alive after the call of the next handler, and the stack would
// grow with each instruction.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CITCAT_FAST_HANDLER \
  __attribute__((no_sanitize("address", "thread", "undefined"), optimize("O2")))
#else
#define CITCAT_FAST_HANDLER
#endif

#define FAST_PARAMETERS                                                                          \
  [[maybe_unused]] const Op *op, [[maybe_unused]] State *s, [[maybe_unused]] std::uint8_t *area, \
      [[maybe_unused]] std::uint32_t fz, [[maybe_unused]] std::uint32_t fs,                      \
      [[maybe_unused]] std::uint32_t fc
#define FAST_NEXT return op[1].handler(op + 1, s, area, fz, fs, fc)
#define FAST_MISS return miss(op, s, area, fz, fs, fc)

namespace citcat::fast {

/// An access was not found: State::miss_*. In handlers.cc.
void miss(FAST_PARAMETERS);

/// The processor's mode.
template <bool kIsWide>
struct ModePolicy {
  static constexpr bool kWide = kIsWide;  ///< in 64-bit mode
};

/// How memory is accessed.
template <AccessNotes kNotes, bool kIsExact, bool kIsWide>
struct AccessPolicy : ModePolicy<kIsWide> {
  static constexpr bool kExact = kIsExact;                        ///< Policy::exact
  static constexpr bool kStores = kNotes == AccessNotes::stores;  ///< stores are kept, or looked at
  /// Addresses are put into an area.
  static constexpr bool kArea = kNotes != AccessNotes::none && !(kStores && kIsExact);
  static constexpr bool kLog = kNotes == AccessNotes::values;  ///< accesses are kept in State::log
};

/// How one block follows another.
template <Keep kKeep, bool kIsExact, bool kIsWide>
struct FlowPolicy : AccessPolicy<notes_for(kKeep), kIsExact, kIsWide> {
  /// Into State::batch.
  static constexpr bool kBatches = kKeep == Keep::addresses || kKeep == Keep::references;
  static constexpr bool kImages = kKeep == Keep::kt_records;  ///< areas follow one another
  /// From one address of an operation to the next.
  static constexpr std::size_t kAddressBytes = kImages && !kIsWide ? 4 : 8;
  /// And into State::trail.
  static constexpr bool kTrail = kKeep == Keep::trail || kKeep == Keep::stores_trail;
  static constexpr bool kCounts = kTrail || kKeep == Keep::counts;  ///< each counts itself
};

}  // namespace citcat::fast
