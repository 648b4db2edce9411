#pragma once
// The prices of causes: how unlikely each is. 1: one bit captured wrongly, and nothing against it.
//
// Several transactions that agree on a value would all have to be wrong; what later traffic
// contradicts outright costs more than any chain of lesser doubts.

#include <cstdint>

namespace citcat {

inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};  ///< no transaction, no instruction

inline constexpr double kConfirmed = 0.5;  ///< later traffic shows what the cause predicts
inline constexpr double kOneGlitch = 1;
inline constexpr double kNeverSeenAgain = 1.2;  ///< nothing speaks for it or against it
inline constexpr double kOneByte = 1.7;         ///< several bits of one byte, and never seen again
inline constexpr double kDevice = 4;
inline constexpr double kSeveralGlitches = 6;
inline constexpr double kContradicted = 9;
/// A byte, a port or a register is what the bus wants it to be.
inline constexpr double kSolvedValue = 1.4;
inline constexpr double kAnyByte = 1.65;  ///< any value of a byte
inline constexpr double kSuspected = 12;  ///< nothing can be tried for it
/// For each step between the cause and where it showed itself.
inline constexpr double kPerStep = 0.02;

/// Sources of a lineage, nearest first, of which every value of every byte is tried.
inline constexpr std::size_t kMaxTriedWhole = 8;
/// How early in a run its initial registers are all suspect.
inline constexpr std::uint64_t kYoung = 30'000;

/// More, for so many steps; of values that are solved for.
constexpr double steps_price(unsigned distance) {
  constexpr double kMaxForSteps = 0.4;
  return kPerStep * distance < kMaxForSteps ? kPerStep * distance : kMaxForSteps;
}

}  // namespace citcat
