#include "cli/comparison_arguments.h"

namespace citcat {

void define_comparison(const CommandParser& parser, ComparisonPolicy& policy) {
  parser.add_flag("--strict", policy.strict,
                  "Take no result over from the bus where implementations differ");
  parser.add_flag("--accept-bit-changes", policy.bit_changes,
                  "Believe another bus master that changes a single bit and nothing around it");
}

}  // namespace citcat
