// The question which functions are called around a moment.

#include <algorithm>
#include <map>
#include <optional>

#include "events/position_text.h"
#include "replay/machine/executed_block.h"
#include "view/model/answer_text.h"

namespace citcat::view {

namespace {

constexpr std::uint64_t kCallsReach = 100'000, kFarthestCalls = 2'000'000;

/// Counts the calls of each function; those alone that reach its first instruction.
class CallTargets final : public Observer {
 public:
  struct Target {
    std::uint64_t times = 0;
    Position first;
  };
  const std::map<LinearAddr, Target>& found() const { return found_; }

  Interest interest() const override { return {.code = Detail::blocks}; }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) override {
    for (const ExecutedBlock& block : blocks) {
      take(block.linear(0), block.decoded(block.count() - 1).kind, first);
      first.instruction += block.count();
    }
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    take(e.linear, e.info->kind, now);
  }
  void iterations(const ExecutedInstruction& first, std::uint32_t, std::uint32_t,
                  Position now) override {
    take(first.linear, first.info->kind, now);
  }
  void delivered(const DeliveredEvent&, Position) override { called_ = false; }

 private:
  /// Code from `begin` on ran; its last instruction is of this kind.
  void take(LinearAddr begin, InstructionClass last, Position now) {
    if (called_) {
      Target& target = found_[begin];
      if (target.times++ == 0) target.first = now;
    }
    called_ = last == InstructionClass::call || last == InstructionClass::far_call;
  }

  std::map<LinearAddr, Target> found_;
  bool called_ = false;
};

/// Functions that are called near a moment, those that are called most often first.
Json answer_functions(RunView& view, const Query& query) {
  const std::uint64_t reach = query.number("reach", kCallsReach, kFarthestCalls);
  const std::uint64_t limit = query.number("limit", 200, 5000);
  const Moment moment = view.go_to(query);
  const std::uint64_t at = moment.position.instruction, from = at - std::min(at, reach);
  Json json = here(view);
  CallTargets calls;
  view.go_to_last({0, {from, 0}});
  const bool whole = view.listen(calls, Detail::blocks, {0, {at + reach, 0}}, view.limit());
  json["from"] = from;
  json["to"] = view.timeline().position().instruction;
  view.go_to(WantedMoment{moment.position, moment.deliveries});
  if (!whole) json["why"] = kSearchTookTooLong;
  std::vector<std::pair<LinearAddr, CallTargets::Target>> found(calls.found().begin(),
                                                                calls.found().end());
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second.times > b.second.times; });
  json["functions"] = Json::array();
  json["more"] = found.size() > limit;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), limit); ++i) {
    const auto& [address, target] = found[i];
    Json one = {{"address", linear_text(view, address)},
                {"times", target.times},
                {"first", position_text(target.first)}};
    if (const std::string place = view.place(address); !place.empty()) one["place"] = place;
    json["functions"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::vector<Question> function_questions() {
  return {{"functions", {"at", "reach", "limit"}, answer_functions}};
}

}  // namespace citcat::view
