#include "cli/view/machine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "replay/processors/unshown_stores.h"

namespace citcat {

namespace {

using Json = nlohmann::ordered_json;

Json contradiction_verdict(const CrossCheckResult& bus) {
  const BusContradiction& first = *bus.first;
  std::string text = "what the processors saw of each other: " + first.reason;
  if (!first.expected.empty()) text += "; expected " + first.expected;
  text += fmt::format(", found {} (processor {}", first.found, first.processor);
  if (first.t.index != kNoTransaction) text += fmt::format(", transaction {}", first.t.index);
  text += ")";
  if (bus.contradictions > 1) {
    text += fmt::format(", and {} more contradictions", bus.contradictions - 1);
  }
  Json json = {{"state", "diverged"}, {"text", text}, {"run", first.processor + 1}};
  if (first.t.has(kPositionKnown)) {
    json["moment"] = fmt::format("{}", first.t.position.instruction);
  }
  return json;
}

}  // namespace

MachineCheck::MachineCheck(const MachineFile& machine, bool compares, ComparisonPolicy policy)
    : machine_(machine),
      policy_(std::move(policy)),
      files_(open_processors(machine)),
      check_(cross_check_of(machine, files_)) {
  if (compares && files_.front().meta().evidence == EvidenceMode::full) {
    bus_.emplace(shared_bus_of(machine, files_));
  }
}

void MachineCheck::ended(std::size_t processor, const Machine& at_end) {
  if (bus_) changed_[processor] = lines_changed_in_cache(files_[processor], at_end);
}

bool MachineCheck::look_further(std::uint64_t transactions) {
  SharedEvent event;
  for (; bus_ && !known_ && transactions != 0; --transactions) {
    if (bus_->next(event)) {
      check_.take(event);
    } else {
      check_.finish();
      known_ = true;
    }
  }
  if (known_) {
    for (const auto& [processor, lines] : std::exchange(changed_, {})) {
      check_changed_lines(machine_, check_, processor, lines, policy_, stores_);
    }
  }
  return !is_known();
}

Json MachineCheck::verdict(const std::vector<Json>& each) const {
  const auto find = [&](const char* state) {
    return std::find_if(each.begin(), each.end(),
                        [&](const Json& verdict) { return verdict["state"] == state; });
  };
  if (!clean()) {
    return contradiction_verdict(check_.result().clean() ? stores_ : check_.result());
  }
  if (const auto left = find("diverged"); left != each.end()) {
    const auto number = left - each.begin();
    Json json = {{"state", "diverged"},
                 {"text", fmt::format("processor {} diverges from its evidence", number)},
                 {"run", number + 1}};
    if (left->contains("moment")) json["moment"] = (*left)["moment"];
    return json;
  }
  if (find("not compared") != each.end()) {
    return {{"state", "not compared"}, {"text", "nothing of the runs is compared with evidence"}};
  }
  if (find("comparing") != each.end() || !is_known()) {
    return {{"state", "comparing"}, {"text", "the processors agree with each other so far"}};
  }
  return {{"state", "match"},
          {"text", bus_ ? fmt::format("the {} processors agree with everything that their bus "
                                      "showed, and with each other",
                                      each.size())
                        : "what the processors saw of each other is not compared: the recording "
                          "has digests in place of it"}};
}

}  // namespace citcat
