#pragma once
// JSON as text, whatever bytes its strings hold.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace citcat {

/// `value` as one line or indented by `indent`. Names of files and texts from files need not be
/// UTF-8: what is not becomes the replacement character.
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace citcat
