// Questions about the instructions that ran around a moment, and those that lie at an address.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "events/machine/address_space.h"
#include "events/position_text.h"
#include "replay/machine/code_place.h"
#include "view/model/answer_text.h"
#include "x86/disassembler.h"

namespace citcat::view {

namespace {

constexpr std::uint64_t kUsualLines = 40, kMostLines = 2000;
/// Accesses of one line that are told one by one.
constexpr std::size_t kMostAccesses = 40;

/// One line: a step, or iterations of a REP that followed one another.
struct CodeLine {
  Moment first, last, after;
  LinearAddr linear;
  std::vector<std::uint8_t> bytes;
  std::uint8_t bits = 32;
  bool completed = true, faults = false, repeated = false;
  std::uint32_t steps = 1;
  AddressSpaceId space = 0;
  Json reads = Json::array(), writes = Json::array(), ports = Json::array(), events = Json::array();
  std::map<std::size_t, RegisterValue> changes;
};

class CodeWindow final : public StepSink {
 public:
  CodeWindow(RunView& view, Moment here, std::size_t before, std::size_t after)
      : view_(view), here_(here), most_before_(before), most_after_(after) {}

  void begins(const Moment&, const CpuState& state) override { state_ = state; }
  void step(const RecordedStep& step) override;
  void ends(const Moment& moment) override;
  const std::deque<CodeLine>& lines() const { return lines_; }
  /// What would run where the run ends; null where it goes on.
  const Json& end() const { return end_; }

 private:
  bool joins(const RecordedStep& step) const;
  void add_accesses(const RecordedStep& step, CodeLine& line) const;

  RunView& view_;
  const Moment here_;
  std::size_t most_before_, most_after_;
  std::size_t after_ = 0;
  CpuState state_;
  std::deque<CodeLine> lines_;
  Json end_;
};

/// The instruction that is next, and why it is not made.
void CodeWindow::ends(const Moment& moment) {
  const std::string why = ending_text(view_);
  if (why.empty() || (!lines_.empty() && lines_.back().after != moment)) return;
  end_ = here(view_);
  end_.erase("instruction");
  const CodeHere code = code_at(view_, view_.machine().next_linear());
  end_["bytes"] = bytes_text(code.bytes);
  end_["text"] = code.text;
  end_["ends"] = why;
}

bool CodeWindow::joins(const RecordedStep& step) const {
  if (lines_.empty() || !step.repeated || step.before == here_) return false;
  const CodeLine& last = lines_.back();
  return last.repeated && last.linear == step.linear && last.after == step.before &&
         last.completed && step.before.position.iteration != 0;
}

void CodeWindow::add_accesses(const RecordedStep& step, CodeLine& line) const {
  for (const StepAccess& access : step.accesses) {
    Json& list = access.write ? line.writes : line.reads;
    if (access.kind == AccessKind::walk || list.size() >= kMostAccesses) continue;
    Json json = {{"physical", physical_text(view_, access.physical)}, {"size", access.size}};
    if (access.kind == AccessKind::data) json["address"] = linear_text(view_, access.linear);
    if (access.known) json["value"] = value_text(step.bytes.subspan(access.bytes, access.size));
    if (access.outside)
      json["by"] = "another bus master";
    else if (access.kind == AccessKind::system)
      json["by"] = "the processor itself";
    list.push_back(std::move(json));
  }
  for (const StepPort& port : step.ports) {
    line.ports.push_back({{"port", fmt::format("{:04x}", port.port)},
                          {"write", port.write},
                          {"size", port.size},
                          {"value", fmt::format("{:0{}x}", port.value, 2 * port.size)}});
  }
  for (const StepEvent& event : step.events) line.events.push_back(event_text(event));
}

void CodeWindow::step(const RecordedStep& step) {
  if (!joins(step)) {
    if (step.before >= here_ && after_++ >= most_after_) return;
    CodeLine line;
    line.first = step.before;
    line.linear = step.linear;
    line.bytes.assign(step.code.begin(), step.code.begin() + step.length);
    line.bits = step.bits;
    line.repeated = step.repeated;
    line.steps = 0;
    line.space = address_space_of(state_.cr3, state_.cr4);
    lines_.push_back(std::move(line));
    if (step.before < here_ && lines_.size() > most_before_) lines_.pop_front();
  } else if (step.before >= here_ && after_ > most_after_) {
    return;
  }
  CodeLine& line = lines_.back();
  line.last = step.before;
  line.after = step.after;
  line.completed = step.completed;
  line.faults = is_fault(step);
  ++line.steps;
  add_accesses(step, line);
  const RegisterTable& table = view_.registers();
  table.for_each_change(state_, *step.state_after, [&](std::size_t i) {
    line.changes[i] = table.value(i, *step.state_after);
  });
  state_ = *step.state_after;
}

Json line_json(RunView& view, const CodeLine& line) {
  Json json = {{"moment", moment_text(line.first)},
               {"position", position_text(line.first.position)},
               {"address", linear_text(view, line.linear)}};
  const std::string place = view.place_in(line.linear, view.index().process_name(line.space));
  if (!place.empty()) json["place"] = place;
  if (line.bytes.empty()) {
    json["text"] = code_at(view, line.linear).text;
  } else {
    json["bytes"] = bytes_text(line.bytes);
    json["text"] = Disassembler(line.bits).text(line.bytes, line.linear.value);
  }
  if (line.steps > 1) json["iterations"] = line.steps;
  if (!line.completed) json[line.faults ? "faults" : "interrupted"] = true;
  for (const auto& [name, list] :
       {std::pair("reads", &line.reads), std::pair("writes", &line.writes),
        std::pair("ports", &line.ports), std::pair("events", &line.events)}) {
    if (!list->empty()) json[name] = *list;
  }
  Json changes = Json::object();
  const RegisterTable& table = view.registers();
  for (const auto& [i, value] : line.changes) {
    // That it goes on is no news.
    if (table.name(i) == "eip" || table.name(i) == "rip" || table.name(i) == "ip") continue;
    changes[table.name(i)] = table.text(i, value);
  }
  if (!changes.empty()) json["changes"] = std::move(changes);
  json["next"] = moment_text(line.after);
  return json;
}

/// What ran before and after a moment, with all that it read and wrote.
Json answer_code(RunView& view, const Query& query) {
  const std::uint64_t before = query.number("before", kUsualLines, kMostLines);
  const std::uint64_t after = query.number("after", kUsualLines, kMostLines);
  const Moment moment = view.go_to(query);
  const std::uint64_t at = moment.position.instruction;
  CodeWindow window(view, moment, static_cast<std::size_t>(before),
                    static_cast<std::size_t>(after));
  const bool whole = view.record(WantedMoment{{at - std::min(at, before), 0}, std::nullopt},
                                 {0, {at + after, 0}}, window, view.limit());
  Json json = here(view);
  if (!whole) json["why"] = kSearchTookTooLong;
  json["lines"] = Json::array();
  for (const CodeLine& line : window.lines()) json["lines"].push_back(line_json(view, line));
  if (!window.end().is_null()) json["lines"].push_back(window.end());
  return json;
}

/// The instructions that lie from an address on, as memory has them at a moment.
Json answer_listing(RunView& view, const Query& query) {
  const std::uint64_t count = query.number("count", kUsualLines, kMostLines);
  view.go_to(query);
  LinearAddr at{query.hexadecimal("address")};
  Json json = here(view);
  json["lines"] = Json::array();
  for (std::uint64_t i = 0; i < count; ++i) {
    const CodeHere code = code_at(view, at);
    Json line = {
        {"address", linear_text(view, at)}, {"bytes", bytes_text(code.bytes)}, {"text", code.text}};
    const std::string place = view.place(at);
    if (!place.empty()) line["place"] = place;
    json["lines"].push_back(std::move(line));
    if (code.info.length == 0) break;
    at = code.info.bits64 ? LinearAddr{at.value + code.info.length} : at.plus32(code.info.length);
  }
  return json;
}

}  // namespace

std::vector<Question> code_questions() {
  return {{"code", {"at", "before", "after"}, answer_code},
          {"listing", {"at", "address", "count"}, answer_listing}};
}

}  // namespace citcat::view
