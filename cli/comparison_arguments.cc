#include "cli/comparison_arguments.h"

namespace citcat {

void define_comparison(const CommandParser& parser, ComparisonPolicy& policy) {
  parser.add_flag("--strict", policy.strict,
                  "Take no result from the bus, even one in which processor models differ");
  parser.add_flag("--accept-bit-changes", policy.bit_changes,
                  "Accept a single changed bit in memory as the work of another bus master");
}

}  // namespace citcat
