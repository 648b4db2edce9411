#pragma once
// What all handlers of the fast tier have in common: their parameters, and the policies that they are
// made for.

#include <cstdint>

#include "replay/machine/fast/fast_state.h"

// Sanitizers would keep something alive behind the call of the next handler, and the stack would
// grow with each instruction.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CITCAT_FAST_HANDLER \
  __attribute__((no_sanitize("address", "thread", "undefined"), optimize("O2")))
#else
#define CITCAT_FAST_HANDLER
#endif

#define FAST_PARAMETERS                                                                        \
  [[maybe_unused]] const Op *op, [[maybe_unused]] State *s, [[maybe_unused]] std::uint8_t *area, \
      [[maybe_unused]] std::uint32_t fz, [[maybe_unused]] std::uint32_t fs,                    \
      [[maybe_unused]] std::uint32_t fc
#define FAST_NEXT return op[1].handler(op + 1, s, area, fz, fs, fc)
#define FAST_MISS return miss(op, s, area, fz, fs, fc)

namespace citcat::fast {

/// An access was not found: State::miss_*. In handlers.cc.
void miss(FAST_PARAMETERS);

/// Nobody is told of plain code.
struct Plain {
  static constexpr bool kArea = false;    ///< addresses are put into an area
  static constexpr bool kImages = false;  ///< areas follow one another, and are nobody's concern
  static constexpr bool kChains = true;   ///< blocks run on without coming back
  static constexpr bool kExact = false;   ///< byte by byte, memory is looked at as defined or not
  static constexpr bool kCounts = false;  ///< each block counts how often it ran
  static constexpr bool kLog = false;     ///< stores are kept, to be told, compared or undone
  static constexpr bool kLogReads = false;  ///< and what is read, in order with them
  static constexpr bool kBatches = false;  ///< so are the blocks that follow one another
  static constexpr bool kStores = false;   ///< what is stored is kept in State::stores
  static constexpr bool kTrail = false;    ///< the last blocks are kept in State::trail
  static constexpr bool kTraps = false;    ///< stores are looked at for the trap (State::trap)
  static constexpr bool kWide = false;     ///< in 64-bit mode
};
/// A trace is made of images of blocks.
struct Traced : Plain {
  static constexpr bool kArea = true, kImages = true;
};
/// Observers want to know how often each block ran.
struct Counted : Plain {
  static constexpr bool kCounts = true;
};
/// The same, and of the last of them with their addresses.
struct Trailed : Counted {
  static constexpr bool kArea = true, kTrail = true;
};
/// Observers want to know what is stored.
struct Stored : Plain {
  static constexpr bool kStores = true;
};
/// And what Trailed tells.
struct StoredTrailed : Trailed {
  static constexpr bool kStores = true;
};
/// Observers are told of each block.
struct Told : Plain {
  static constexpr bool kArea = true, kChains = false;
};
/// With what each block reads and stores; several blocks are told together.
struct Referenced : Told {
  static constexpr bool kLog = true, kLogReads = true, kChains = true, kBatches = true;
};
// The same of a replay that is compared, where nothing is expected.
struct Exact : Plain {
  static constexpr bool kExact = true;
};
/// Somebody wants to know whether certain bytes are stored to, and nothing else.
struct ExactTrapped : Exact {
  static constexpr bool kTraps = true;
};
struct ExactTraced : Traced {
  static constexpr bool kExact = true;
};
struct ExactCounted : Counted {
  static constexpr bool kExact = true;
};
struct ExactTrailed : Trailed {
  static constexpr bool kExact = true;
};
struct ExactTold : Told {
  static constexpr bool kExact = true;
};
/// Blocks are compared.
struct Logged : ExactTold {
  static constexpr bool kLog = true, kLogReads = true, kChains = true, kBatches = true;
};
/// Any of these in 64-bit mode.
template <class P>
struct Wide : P {
  static constexpr bool kWide = true;
};

}  // namespace citcat::fast
