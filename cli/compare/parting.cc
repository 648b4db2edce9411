#include "cli/compare/parting.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/compare/compared_recording.h"
#include "cli/compare/difference_output.h"

namespace citcat {

namespace {

using Json = nlohmann::ordered_json;

Json values_of(const std::vector<sql::ComparedValue>& values) {
  Json all = Json::array();
  const auto number = [](const std::optional<std::uint64_t>& n) -> Json {
    if (!n) return nullptr;
    return fmt::format("{:x}", *n);
  };
  for (const sql::ComparedValue& v : values) {
    all.push_back({{"name", v.name}, {"a", number(v.a)}, {"b", number(v.b)}});
  }
  return all;
}

}  // namespace

Json parting_json(const ComparedSide& a, const ComparedSide& b, const Console& console) {
  // After a divergence there is no run to compare.
  ComparedRecording first(a.recording, true, console), second(b.recording, true, console);
  const sql::RunDifference found =
      sql::difference_of(first.source(), a.from, second.source(), b.from);
  Json json = {{"differs", found.differs},
               {"compared", found.compared},
               {"a", compared_json(found.a)},
               {"b", compared_json(found.b)}};
  if (found.last_a && found.last_b) {
    json["last"] = {{"a", found.last_a->position}, {"b", found.last_b->position}};
  }
  json["registers"] = values_of(found.registers);
  json["memory"] = values_of(found.memory);
  return json;
}

}  // namespace citcat
