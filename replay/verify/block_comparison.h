#pragma once
// Compares a block, several that ran one after another, or many iterations of a repeated string, as
// a whole.
//
// A block agrees only if each of its instructions would agree without any adoption or excuse.
// Otherwise it is rolled back, and its instructions are executed and compared one by one. Evidence
// may be read ahead for everything that is compared as a whole, but an instruction is never
// compared with transactions of a later one.

#include <cstdint>

#include "replay/machine/executed_block.h"
#include "replay/machine/string_iterations.h"
#include "replay/verify/block_memory.h"
#include "replay/verify/comparison.h"

namespace citcat {

/// Judges blocks as BlockJudge says of the members of the same names.
class BlockComparison {
 public:
  /// `comparison` must outlive it.
  explicit BlockComparison(Comparison& comparison) : c_(comparison) {}

  Position expected();
  bool may_run_block(Position first, std::uint32_t count) { return may_run(first, count) == count; }
  /// How many of the next `most` instructions may run as one: of those all is known, and plain.
  std::uint32_t may_run(Position first, std::uint32_t most);
  /// After so many of the next `count` instructions nothing is expected, as far as is known.
  std::uint32_t due_within(Position first, std::uint32_t count) const;
  InstructionNumbers reads_of_interest(Position first) const {
    return c_.reads != nullptr ? c_.reads->pending_data(first.instruction) : InstructionNumbers{};
  }
  bool agrees(const JudgedBlock& block, Position first);
  void agreed(const JudgedBlock& block, Position first);
  std::uint32_t agreed_iterations(const StringIterations& run, Position first);

  /// In a plain comparison: nothing is expected yet.
  bool expects_nothing(Position now) const { return c_.plain && now < expected_; }
  /// An event came at `now`.
  void interrupted(Position now) {
    c_.interrupted = now.instruction;
    if (expected_.instruction == now.instruction) expected_.iteration = 0;
  }

 private:
  /// Where something is expected: at the beginning of the REP that an event interrupted, which
  /// starts again.
  Position place_of(const BusTransaction& t) const {
    if (!t.has(kPositionKnown)) return {};
    if (t.position.instruction == c_.interrupted) return {c_.interrupted, 0};
    return t.position;
  }
  static Position place_before(Position at);
  Position first_unsettled();
  std::uint32_t pull_plain(std::uint64_t first, std::uint32_t most);
  bool is_plain(const BusTransaction& t, std::uint64_t first) const;
  bool reads_back(const BusTransaction& t) const;
  void pull_reads_at(Position at);
  bool needs_no_following(const JudgedBlock& block) const;
  bool stores_agree(const JudgedBlock& block, std::uint64_t first);
  bool is_shown(const BlockStore& store, std::uint64_t instruction) const;
  bool lines_agree(const JudgedBlock& block, std::uint64_t first, const BlockMemory& after) const;
  static bool line_agrees(const JudgedBlock& block, const LineMatcher::Pending& line,
                          std::uint32_t instruction, const BlockMemory& after);
  void take_writes(std::size_t count);
  bool may_take_iterations(Position first) const;
  std::size_t count_stores(StringIterations& run, std::uint64_t instruction) const;

  Comparison& c_;
  Position expected_;            ///< as the machine was told last
  std::size_t writes_made_ = 0;  ///< found by agrees() for the next agreed()
};

}  // namespace citcat
