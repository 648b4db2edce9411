#pragma once
// JSON as text, whatever bytes its strings hold.

#include <string>

namespace citcat {

/// `value`, of nlohmann's types, as one line or indented by `indent`. Names of files and texts from
/// files need not be UTF-8: what is not becomes the replacement character.
template <typename Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace citcat
