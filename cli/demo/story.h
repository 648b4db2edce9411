#pragma once
// Describes a run in sentences.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace citcat {

/// The tools whose reports story() reads.
std::vector<std::string> story_tools();

/// Sentences about a run of a PC: its interrupts, its ports, what it drew and the code it spent its
/// instructions in. `tools`: the reports of story_tools(), by their names, as `analyze --json` has
/// them.
std::vector<std::string> story(const nlohmann::ordered_json& tools);

}  // namespace citcat
