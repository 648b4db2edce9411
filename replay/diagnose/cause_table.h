#pragma once
// The table of all possible causes of a divergence that are worth trying, a row for each sort.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/diagnose/cause.h"
#include "replay/diagnose/cause_context.h"

namespace citcat {

/// Causes found, in no order.
struct CauseList {
  std::vector<Cause> causes;
  std::vector<std::string> left_out;  ///< what is not among them, a line for each

  void add(Cause cause) { causes.push_back(std::move(cause)); }
};

/// Adds the causes of one sort for the divergence that the context is of.
struct CauseRow {
  std::string_view name;
  void (*generate)(const CauseContext& context, CauseList& out);
};
std::span<const CauseRow> cause_table();

/// Those of all rows.
CauseList find_causes(const CauseContext& context);

/// Causes that nothing can be tried for, to be named where no other repairs the run: those that
/// what is known speaks for, likeliest first.
std::vector<Cause> suspected_causes(const CauseContext& context);

/// What the generators of one noun share; each is made for one row's call.
class CauseGenerator {
 public:
  CauseGenerator(const CauseContext& context, CauseList& out) : c_(context), out_(out) {}

 protected:
  const CauseContext& c_;
  CauseList& out_;
};

}  // namespace citcat
