#pragma once
// The known facts about a divergence when its causes are searched for.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/diagnose/evidence_index.h"
#include "replay/diagnose/trial_run.h"
#include "replay/diagnose/value_guesses.h"
#include "replay/diagnose/value_lineage.h"

namespace citcat {

/// A byte that bus and replay's memory disagree on where the replay stopped.
struct ByteMismatch {
  PhysAddr address;
  std::uint8_t shown = 0, ours = 0;
};

/// A byte of memory that the bus shows otherwise where it arrived after some moves.
struct MovedByte {
  PhysAddr from;
  std::uint8_t shown = 0;
  std::size_t step = 0;
};

class CauseContext {
 public:
  /// After TrialRun::run() gave `divergence`. Both must outlive the context.
  CauseContext(TrialRun& trials, const Divergence& divergence);
  CauseContext(const CauseContext&) = delete;
  CauseContext& operator=(const CauseContext&) = delete;

  /// For those who must replay once more.
  TrialRun& trials() const { return trials_; }
  const Recording& recording() const { return trials_.recording(); }
  /// What the run was given.
  const Schedule& schedule() const { return trials_.schedule(); }
  /// Where the replay stopped.
  const Machine& machine() const { return trials_.machine(); }
  const Memory& memory() const { return trials_.machine().memory(); }
  const Divergence& divergence() const { return divergence_; }
  /// The interrupt of the schedule that comes next there.
  std::size_t next_interrupt() const { return next_interrupt_; }

  const RunHistory& history() const { return history_; }
  /// What the evidence shows of the bytes in question.
  const EvidenceIndex& shown() const { return *index_; }
  /// Where values in question came from, nearest first.
  const std::vector<LineageSource>& lineage() const { return lineage_; }
  const std::vector<ByteMismatch>& mismatches() const { return mismatches_; }
  /// By number of moves.
  const std::vector<std::vector<MovedByte>>& moved() const { return moved_; }
  /// What the bus shows from the divergence on.
  const std::vector<BusTransaction>& upcoming() const { return upcoming_; }
  /// Differences in what the replay did last.
  const std::vector<ShownDifference>& differences() const { return differences_; }

  /// Places in Schedule::internal_reads of the internal reads in the history, by step.
  const std::map<std::size_t, std::size_t>& internal_numbers() const { return internal_numbers_; }
  std::optional<std::size_t> internal_number(std::size_t step) const;

  /// The byte as the replay left it; 0 where nothing tells.
  std::uint8_t memory_byte(PhysAddr a) const;
  /// The transaction before which the one of this position would have been.
  std::uint64_t transaction_after(Position position) const;
  /// The first external write to `byte` after `transaction`, and what it left there.
  std::uint64_t next_external(PhysAddr byte, std::uint64_t transaction,
                              std::optional<std::uint8_t>* value = nullptr) const;

 private:
  std::optional<std::uint8_t> replayed_byte(PhysAddr captured) const;
  void find_mismatches();
  void add_mismatches(const BusTransaction& t);
  void trace_back();
  void trace_moves(ValueLineage& lineage);
  void index_evidence();
  std::uint64_t shown_store(const HistoryAccess& store) const;
  void compare_last_steps();
  void compare(const HistoryAccess& a);
  void number_internal_reads();

  TrialRun& trials_;
  const Divergence& divergence_;
  const RunHistory& history_;
  std::size_t next_interrupt_ = 0;
  std::map<std::uint64_t, std::uint8_t> memory_;  ///< bytes of interest where the replay stopped
  std::vector<ByteMismatch> mismatches_;
  std::vector<std::vector<MovedByte>> moved_;
  std::vector<LineageSource> lineage_;
  std::unique_ptr<EvidenceIndex> index_;
  std::map<std::size_t, std::size_t> internal_numbers_;
  std::vector<BusTransaction> upcoming_;
  std::vector<ShownDifference> differences_;
};

}  // namespace citcat
