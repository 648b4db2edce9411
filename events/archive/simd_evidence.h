#pragma once
// Evidence of a run of accesses, made sixteen at a time with vectors of 64 bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "events/access_run.h"

namespace citcat {

/// The places in a step (EvidenceEncoder) of the fields that relate a transaction to those before
/// it; zero for fields that it does not have. docs/formats/archive.md, EVD2, `how`.
struct StepLayout {
  static constexpr unsigned kAddressShift = 0;      ///< two bits: 0, 1, 2 or 4 bytes of difference
  static constexpr unsigned kClockShift = 2;        ///< five bits: the difference, or kInColumn
  static constexpr unsigned kInstructionShift = 7;  ///< five bits: the difference, or kInColumn
  static constexpr unsigned kIterationShift = 12;   ///< two bits: Iteration
  static constexpr unsigned kIndexShift =
      14;  ///< 1: index in the column, 0: follows the one before
  static constexpr unsigned kBits = 15;
  static constexpr unsigned kInColumn = 16;
  enum Iteration : std::uint8_t { kZero, kSame, kOneMore, kOther };
};

/// The part of a run that goes into evidence.
struct SimdEvidence {
  static constexpr std::size_t kMax = AccessRun::kMax;
  /// Vectors are written whole: so many elements after the last may be written too.
  static constexpr std::size_t kBehind = 64;

  // In: from the transactions before the run.
  std::array<std::uint32_t, 3> address{};  ///< expected of each operation; changed
  std::uint32_t clock = 0;                 ///< lowest half
  std::uint32_t iteration = 0;
  std::uint64_t instruction = 0;  ///< as the run counts
  // Where to write to; there is room for four bytes, one, and one element for each access, and
  // kBehind bytes, elements.
  std::uint8_t* address_bytes = nullptr;
  std::uint64_t* clocks = nullptr;        ///< differences
  std::uint64_t* instructions = nullptr;  ///< differences, mod 2^64

  // Out: how many that was.
  std::size_t address_count = 0, clock_count = 0, instruction_count = 0;
  /// Each access's shape; from bit kShapeBits on, its step without the index.
  alignas(64) std::array<std::uint32_t, kMax> key;
  // Accesses that write, and those whose iteration no step tells, in order.
  std::size_t write_count = 0, other_count = 0;
  std::array<std::uint32_t, kMax + kBehind> writes, others;

  /// Packs a run with columns, counts and clocks; `shape_flags` is added to all shapes. The first
  /// clock is not below `clock`. Wants has_simd_vectors().
  void pack(const AccessRun& run, std::uint32_t shape_flags);
};

}  // namespace citcat
