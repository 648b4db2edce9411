#include "formats/io/json_text.h"

#include <nlohmann/json.hpp>

namespace citcat {

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace citcat
