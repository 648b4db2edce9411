#pragma once
// The plan of a metric at a focus: which code goes to which points. The code of the metric and of
// each constraint exists only once, however they are combined.

#include <string>
#include <utility>
#include <vector>

#include "tools/mdl/code.h"
#include "tools/mdl/focus.h"
#include "tools/mdl/library.h"
#include "tools/mdl/points.h"

namespace citcat::mdl {

/// Procedures by names with wildcards.
struct ProcedureSet {
  struct Pattern {
    std::string module, procedure;
  };
  std::vector<Pattern> patterns;
  bool has(const std::string& module, const std::string& procedure) const;
  std::string text() const;
};

/// An if of the metric's text, decided for each procedure when it is first met.
struct ProcedureTest {
  bool by_module = false;  ///< of the module's name, else the procedure's
  bool equal = true;       ///< ==, else !=
  std::string name;
  bool holds(const std::string& module, const std::string& procedure) const;
};

/// Code at points.
struct Attachment {
  PointKind point = PointKind::procedure_entry;
  ProcedureSet procedures;           ///< of points of procedures
  std::vector<ProcedureTest> tests;  ///< all of them must hold
  bool prepend = false;
  bool of_constraint = false;  ///< of the code that says whether a constraint holds
  bool constrained = false;    ///< only where all counters of constraints are other than 0
  std::vector<CodeNode> code;

  bool is_of_procedures() const { return point <= PointKind::call_returned; }
  bool has(const std::string& module, const std::string& procedure) const;
  std::uint64_t cost() const;
};

struct Plan {
  std::string metric, title, units;
  Aggregate aggregate = Aggregate::sum;
  Base base = Base::counter;
  Focus focus;
  /// Variable 0 is the metric; then its temporaries, then a counter of each constraint that has
  /// code.
  std::size_t temporaries = 0, constraints = 0;
  /// A constraint of code is decided by where the code that runs lies.
  bool code_by_place = false;
  /// In the order in which they were put there.
  std::vector<Attachment> attachments;
  /// Some code asks for the arguments of procedures.
  bool wants_arguments = false;
  /// Some code reads the memory of the machine.
  bool reads_memory = false;

  bool is_timer() const { return base == Base::process_timer || base == Base::wall_timer; }
  /// A counter of a constraint belongs to one procedure or module: each that the focus matches
  /// has a plan of its own.
  bool is_for_each_code() const;
};

/// Throws UsageError for a metric that there is not, and for a focus that it has no constraint for.
Plan make_plan(const Library& library, const MetricRequest& request);
/// All that Library::add() promises to check. `library` knows the definitions already.
void check(const Program& program, const Source& source, const Library& library);

}  // namespace citcat::mdl
