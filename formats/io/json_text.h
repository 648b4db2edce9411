#pragma once
// JSON as text, whatever bytes its strings hold.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace citcat {

/// `value` as one line or indented by `indent`. What is not UTF-8, as names from files may be,
/// becomes the replacement character; characters that are not seen (is_unseen()) are escaped.
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace citcat
