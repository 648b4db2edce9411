#include "cli/comparison_arguments.h"

namespace citcat {

void define_comparison(CLI::App& app, ComparisonArguments& arguments) {
  app.add_flag("--strict", arguments.strict,
               "Take no result over from the bus where implementations differ");
  app.add_flag("--accept-bit-changes", arguments.bit_changes,
               "Believe another bus master that changes a single bit and nothing around it");
}

}  // namespace citcat
