// Questions about the processor at a moment.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "debugger/server/run_events.h"
#include "events/machine/cpu_place.h"
#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "replay/machine/code_place.h"
#include "view/model/answer_text.h"
#include "view/model/nest_lines.h"

namespace citcat::view {

namespace {

constexpr std::uint32_t kVirtual8086 = 1u << 17, kPaging = 1u << 31;

std::string mode_of(const RunView& view, const CpuState& cpu) {
  const int bits = code_bits(view.machine().engine());
  if (!cpu_traits(cpu.model).has_limits) return "16-bit code";
  std::string mode = "real mode";
  if ((cpu.cr0 & 1) != 0) {
    mode = (cpu.eflags & kVirtual8086) != 0 ? "virtual-8086 mode"
           : is_in_long_mode(cpu)           ? "long mode"
                                            : "protected mode";
  }
  mode += fmt::format(", {}-bit code", bits);
  if ((cpu.cr0 & kPaging) != 0) mode += ", paging";
  if (cpu.in_smm) mode += ", system management mode";
  return mode;
}

std::string flags_of(std::uint32_t flags) {
  constexpr std::array<std::pair<unsigned, const char*>, 9> kNames{{{0, "CF"},
                                                                    {2, "PF"},
                                                                    {4, "AF"},
                                                                    {6, "ZF"},
                                                                    {7, "SF"},
                                                                    {8, "TF"},
                                                                    {9, "IF"},
                                                                    {10, "DF"},
                                                                    {11, "OF"}}};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((flags >> bit & 1) != 0) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

Json registers_of(const RunView& view, const CpuState& now, const CpuState* before) {
  const RegisterTable& table = view.registers();
  Json list = Json::array();
  for (std::size_t i = 0; i < table.count(); ++i) {
    Json row = {{"name", table.name(i)}, {"group", RegisterTable::group_name(table.group(i))}};
    const bool unknown = table.unknown(i, now);
    row["value"] = unknown ? Json() : Json(table.text(i, table.value(i, now)));
    if (before != nullptr && !unknown && table.value(i, now) != table.value(i, *before)) {
      row["before"] = table.text(i, table.value(i, *before));
    }
    list.push_back(std::move(row));
  }
  return list;
}

/// {"moment": …}: the moment that a position, "begin", "end" or "divergence" is.
Json answer_moment(RunView& view, const Query& query) {
  view.go_to(query);
  return here(view);
}

/// The processor's registers, and what changed since the moment before.
Json answer_state(RunView& view, const Query& query) {
  const Moment moment = view.go_to(query);
  const CpuState now = view.state();
  Json json = here(view);
  const CodeHere code = code_at(view, view.machine().next_linear());
  json["bytes"] = bytes_text(code.bytes);
  json["text"] = code.text;
  json["code"] = fmt::format("{:04x}:{:0{}x}", now.segment[kCs].selector, instruction_pointer(now),
                             cpu_traits(now.model).sixteen_bit ? 4 : 8);
  json["mode"] = mode_of(view, now);
  if (cpu_traits(now.model).has_limits && (now.cr0 & 1) != 0) {
    json["level"] = view.machine().engine().hflags() & kHfCpl;
  }
  if ((now.cr0 & kPaging) != 0) {
    json["address_space"] = fmt::format("{:08x}", view.machine().engine().address_space());
    const std::string process = view.process_here();
    if (!process.empty()) json["process"] = process;
  }
  json["halted"] = now.halted;
  json["flags"] = flags_of(now.eflags);
  std::optional<CpuState> before;
  if (view.timeline().step_back()) {
    before = view.timeline().registers();
    view.go_to(WantedMoment{moment.position, moment.deliveries});
  }
  json["registers"] = registers_of(view, now, before ? &*before : nullptr);
  return json;
}

// ---- calls

constexpr std::uint64_t kUsualReach = 200'000, kFarthestReach = 20'000'000;

/// Calls, interrupts, exceptions and system calls that have not returned, the innermost first.
Json answer_calls(RunView& view, const Query& query) {
  const std::uint64_t reach = query.number("reach", kUsualReach, kFarthestReach);
  const Moment moment = view.go_to(query);
  const auto open = view.open_nest(reach);
  if (!open) {
    Json json = here(view);
    json["why"] = kSearchTookTooLong;
    json["calls"] = Json::array();
    return json;
  }
  const std::uint64_t at = moment.position.instruction;
  const Position from{at - std::min(at, reach), 0};
  Json json = here(view);
  json["looked_back"] = at - from.instruction;
  json["whole"] = from == Position{};
  json["calls"] = Json::array();
  const std::string space = fmt::format("{:08x}", view.machine().engine().address_space());
  for (const NestLine& line : nest_lines(*open)) {
    Json one = line.call ? call_line(view, *line.call) : event_line(view, *line.entered);
    if (one.value("address_space", "") == space) one.erase("address_space");
    json["calls"].push_back(std::move(one));
  }
  return json;
}

// ---- registers

/// How far back one looks for what set a register, in instructions.
constexpr std::array<std::uint64_t, 4> kSetterReaches{500, 20'000, 200'000, 2'000'000};

/// Remembers the last step before a moment that changed a register.
class LastChange final : public StepSink {
 public:
  LastChange(const RegisterTable& table, std::size_t number, Moment before)
      : table_(table), number_(number), before_(before) {}
  void begins(const Moment&, const CpuState& state) override {
    value_ = table_.value(number_, state);
  }
  void step(const RecordedStep& step) override {
    const RegisterValue now = table_.value(number_, *step.state_after);
    if (step.before < before_ && now != value_) {
      found_ = step.before;
      events_.clear();
      for (const StepEvent& event : step.events) events_.push_back(event_text(event));
    }
    value_ = now;
  }
  const std::optional<Moment>& found() const { return found_; }
  /// What that step ended with.
  const std::vector<std::string>& events() const { return events_; }

 private:
  const RegisterTable& table_;
  const std::size_t number_;
  const Moment before_;
  RegisterValue value_;
  std::optional<Moment> found_;
  std::vector<std::string> events_;
};

/// What gave a register the value that it has.
Json answer_setter(RunView& view, const Query& query) {
  const std::string name = query.required("register");
  const auto number = view.registers().find(name);
  if (!number) throw UsageError("register: the processor has no '" + name + "'");
  const Moment moment = view.go_to(query);
  const std::uint64_t at = moment.position.instruction;
  Json json = {{"asked_at", moment_text(moment)}, {"found", false}};
  bool whole = false;
  for (const std::uint64_t reach : kSetterReaches) {
    const Position from{at - std::min(at, reach), 0};
    LastChange last(view.registers(), *number, moment);
    if (!view.record(WantedMoment{from, std::nullopt}, moment, last, view.limit())) {
      json["why"] = kSearchTookTooLong;
      return json;
    }
    json["looked_back"] = at - from.instruction;
    if (last.found()) {
      view.go_to(WantedMoment{last.found()->position, last.found()->deliveries});
      json["found"] = true;
      json.update(here(view));
      json["text"] = code_at(view, view.machine().next_linear()).text;
      if (!last.events().empty()) json["events"] = last.events();
      return json;
    }
    whole = from == Position{};
    if (whole) break;
  }
  json["why"] = whole ? "it has had this value since the recording began"
                      : "it was not changed in the part of the run that was searched";
  return json;
}

}  // namespace

std::vector<Question> state_questions() {
  return {{"moment", {"at"}, answer_moment},
          {"state", {"at"}, answer_state},
          {"setter", {"at", "register"}, answer_setter},
          {"calls", {"at", "reach"}, answer_calls}};
}

}  // namespace citcat::view
