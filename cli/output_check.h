#pragma once
// Refuses an output that is also an input of the command, because the input would be lost.

namespace CLI {
class App;
}

namespace citcat {

/// Looks at --output and at `to=FILE` of tools and formats. Throws UsageError where one has no
/// name, as of a variable that is not set, or is a file that `command`, which was parsed, reads.
void check_outputs(const CLI::App& command);

}  // namespace citcat
