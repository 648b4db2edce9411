#include "formats/io/json_text.h"

#include <nlohmann/json.hpp>

#include "formats/text/printable_text.h"

namespace citcat {

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return printable_json(
      value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace citcat
