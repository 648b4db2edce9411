#pragma once
// What a command writes is none of the files that it reads, which would be gone.

namespace CLI {
class App;
}

namespace citcat {

/// Looks at --output and at `to=FILE` of tools and formats. Throws UsageError where one has no
/// name, as of a variable that is not set, or is a file that `command`, which was parsed, reads.
void check_outputs(const CLI::App& command);

}  // namespace citcat
