#pragma once
// Why a replay diverged from its evidence: candidate causes, each tried, the ones that work ranked.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/recording.h"
#include "replay/diagnose/cause.h"
#include "replay/infer/places/event_placer.h"
#include "replay/session/time_budget.h"

namespace citcat {

struct ExplainOptions {
  ComparisonPolicy policy;
  /// Divergences to explain one after the other, each with what repaired those before.
  unsigned rounds = 8;
  /// Instructions that trials may replay for one divergence. What is left is tried no further.
  std::uint64_t budget = 400'000'000;
  /// For the whole explanation: when it is spent, what was found so far is the answer. May be null.
  TimeBudget* time = nullptr;
  std::function<void(const char* what, std::uint64_t done)> progress;
};

/// A cause that was tried.
struct TriedCause {
  Cause cause;
  bool repairs = false;            ///< the run then agrees with everything, to its end
  std::uint64_t agrees_until = 0;  ///< instruction up to which it was seen to agree
  std::optional<Divergence> next;  ///< where it then diverged from the evidence
  /// It reaches as far as the first cause and asks one to believe no more: the capture does not
  /// say which of them it was.
  bool tied = false;
  /// It cannot be tried, and is named because no other repairs the run.
  bool suspected = false;
  /// For an internal read whose value repairs the run: how many other values were tried, and how
  /// many of those repair the run as well, so that the run does not show which it was.
  std::size_t other_values = 0, equivalent_values = 0;
};

/// An instruction of the context of a divergence.
struct ContextLine {
  Position position;
  LinearAddr linear;
  std::vector<std::uint8_t> bytes;
  std::string text;      ///< disassembly
  std::string accesses;  ///< what it read and wrote
};

/// Where the value in question came from.
struct LineageLine {
  std::string
      source;  ///< "memory 00012345 = 5a, read by transaction 77", "port 0040", "eax at ..."
  std::uint64_t transaction = ~std::uint64_t{0};
  std::vector<ContextLine> path;  ///< from there to where it was noticed
};

struct ExplainedDivergence {
  Divergence divergence;
  std::vector<ContextLine> context;    ///< the instructions up to the divergence
  std::vector<LineageLine> lineage;    ///< nearest first
  std::vector<TriedCause> causes;      ///< best first; only such that explain this divergence
  std::uint64_t tried = 0;             ///< causes tried
  std::vector<std::string> not_tried;  ///< what may be a cause too, for people
  std::uint64_t instructions = 0;      ///< replayed for that
};

struct Explanation {
  ReplayReport report;                      ///< of the run as it was
  std::vector<ExplainedDivergence> rounds;  ///< none when the run agrees
  std::vector<Hint> hints;                  ///< of the first cause of each round
  std::string given_up;   ///< why it ended before it was through (TimeBudget::text()); else empty
  bool repaired = false;  ///< with them the whole run agrees
  /// With the hints applied, and with the places of the last search.
  Recording corrected;
};

/// The hints of a cause, each with the reason.
std::vector<Hint> hints_of(const TriedCause& tried);

/// One replay as it is, and what its divergence, if it has one, may come of.
struct ExplainedRun {
  ReplayReport report;
  std::optional<ExplainedDivergence> divergence;  ///< only where causes were asked for
};
/// The run is given `schedule`; that and `recording` have `hints` applied already, `evidence` is
/// without them.
ExplainedRun explain_run(const Recording& recording, const Schedule& schedule,
                         const EvidenceSource& evidence, const std::vector<Hint>& hints,
                         const ExplainOptions& options, bool causes);

/// Explains. `evidence` opens the recording's evidence from the start, without hints.
Explanation explain(const Recording& recording, const EvidenceSource& evidence,
                    const ExplainOptions& options);

/// The same where the search for the places of interrupts ended with `search`: what comes before
/// the first one without a place is explained, and with that repaired the search goes on, until all
/// have one; then the whole run is explained. `recording` has the places that this search found.
Explanation explain_unplaced(const Recording& recording, const EvidenceSource& evidence,
                             PlacementReport search, const ExplainOptions& options);

}  // namespace citcat
