// Questions about the run as a whole, and about what happened in a stretch of it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "view/model/answer_text.h"
#include "view/model/text_screen.h"

namespace citcat::view {

namespace {

constexpr std::uint64_t kEverything = ~std::uint64_t{0} >> 1;
/// Deliveries in a row from which on they are worth a word.
constexpr std::uint64_t kLongStreak = 200;
constexpr std::size_t kMostWarnings = 8;
constexpr std::uint8_t kDoubleFault = 8;

/// Instructions that the run has, as far as is known.
std::uint64_t run_length(const RunView& view, RunView& asked) {
  if (const auto end = asked.run_end()) return end->instruction;
  const auto counted = view.file().recording().instructions;
  return std::max(view.index().told_to(), counted.value_or(0));
}

/// Instructions of the run that were looked at.
std::uint64_t known_to(RunView& view) {
  const auto end = view.run_end();
  return std::min(view.index().told_to(), end ? end->instruction : view.index().told_to());
}

// ---- the run

Json verdict_of(RunView& view) {
  const std::string known = fmt::format("{}", known_to(view));
  if (const auto& divergence = view.timeline().divergence()) {
    std::string text = place_text(*divergence) + ": " + divergence->reason;
    if (!divergence->expected.empty()) text += "; expected " + divergence->expected;
    if (!divergence->found.empty()) text += ", found " + divergence->found;
    return {{"state", "diverged"}, {"text", text}, {"moment", position_text(divergence->position)}};
  }
  if (!view.options().check) {
    const std::string& before = view.options().compared_before;
    return {{"state", before.empty() ? "not compared" : "match"},
            {"text", before.empty() ? "nothing of the run is compared with its evidence" : before}};
  }
  if (!view.knows_all()) {
    return {{"state", "comparing"},
            {"text", "it agrees with everything the bus showed, up to instruction " + known}};
  }
  return {{"state", "match"},
          {"text", "all " + known + " instructions agree with everything the bus showed"}};
}

/// As one writes it: "interrupt 30h", "NMI".
std::string streak_name(RunEvent::Kind kind, std::uint8_t vector) {
  if (kind == RunEvent::Kind::nmi) return "NMI";
  if (kind == RunEvent::Kind::smi) return "SMI";
  return fmt::format("{} {:02x}h", kind == RunEvent::Kind::exception ? "exception" : "interrupt",
                     vector);
}

/// Registers that nobody dumped and that programs load: the others seldom matter.
std::vector<std::string> unknown_to_programs(const RunView& view) {
  using Group = RegisterTable::Group;
  const RegisterTable& table = view.registers();
  const CpuState& initial = view.file().recording().initial;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < table.count(); ++i) {
    const Group group = table.group(i);
    const bool is_loaded = group <= Group::segment && table.name(i).find('.') == std::string::npos;
    if (is_loaded && table.unknown(i, initial)) names.push_back(table.name(i));
  }
  return names;
}

/// What one would want to see first, each with where it is and what to do about it.
Json unusual_of(RunView& view) {
  Json list = Json::array();
  const RunIndex& index = view.index();
  if (const auto& divergence = view.timeline().divergence()) {
    std::string text = "the replay diverges from its evidence: " + divergence->reason;
    if (!divergence->causes.empty()) text += "; perhaps: " + divergence->causes.front();
    list.push_back({{"text", text},
                    {"moment", "divergence"},
                    {"command", "citcat explain " + view.options().name}});
  }
  if (const auto at = index.shutdown_at()) {
    list.push_back({{"text", "the processor shut down: a third fault while it delivered a second"},
                    {"moment", fmt::format("{}", *at)},
                    {"command", fmt::format("citcat debug {} --at {}", view.options().name, *at)}});
  }
  const auto fault =
      std::find_if(index.events().begin(), index.events().end(), [](const RunEvent& e) {
        return e.kind == RunEvent::Kind::exception && e.vector == kDoubleFault;
      });
  const bool has_double_fault = cpu_traits(view.file().recording().initial.model).has_limits;
  if (fault != index.events().end() && has_double_fault) {
    list.push_back({{"text", "a double fault"}, {"moment", fmt::format("{}", fault->instruction)}});
  }
  const EventStreak& streak = index.longest_streak();
  if (streak.count >= kLongStreak) {
    list.push_back(
        {{"text", fmt::format("{} came {} times in a row, with hardly an instruction in between",
                              streak_name(streak.kind, streak.vector), streak.count)},
         {"moment", fmt::format("{}", streak.first)}});
  }
  const std::vector<std::string> unknown = unknown_to_programs(view);
  if (!unknown.empty()) {
    list.push_back({{"text", fmt::format("no value is known at the beginning of {} register{}: {}",
                                         unknown.size(), unknown.size() > 1 ? "s" : "",
                                         fmt::join(unknown, ", "))},
                    {"moment", "begin"}});
  }
  const auto& warnings = view.file().recording().warnings;
  for (std::size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) {
    list.push_back({{"text", warnings[i]}});
  }
  if (warnings.size() > kMostWarnings) {
    list.push_back({{"text", fmt::format("{} more warnings", warnings.size() - kMostWarnings)},
                    {"command", "citcat info " + view.options().name}});
  }
  return list;
}

/// Only what happened at all.
Json totals_of(const RunIndex& index) {
  const RunBucket all = index.totals();
  Json json = Json::object();
  const auto add = [&](const char* name, std::uint64_t value) {
    if (value != 0) json[name] = value;
  };
  add("interrupts", all.interrupts);
  add("nmis", all.nmis);
  add("smis", all.smis);
  add("exceptions", all.exceptions);
  add("software_interrupts", all.software);
  add("system_calls", all.calls);
  add("port_reads", all.port_reads);
  add("port_writes", all.port_writes);
  add("external_writes", all.external_writes);
  add("halts", all.halts);
  if (index.processes().size() > 1) add("processes", index.processes().size());
  add("console_characters", index.console().size());
  return json;
}

/// The recording, its verdict, and what is unusual in it.
Json answer_run(RunView& view, const Query&) {
  const CpuTraits& traits = cpu_traits(view.file().recording().initial.model);
  Json has = {{"levels", traits.has_limits},
              {"paging", !traits.sixteen_bit},
              {"symbols", !view.symbols().empty()},
              {"evidence", view.file().meta().evidence == EvidenceMode::full},
              {"address_bits", traits.has_long_mode        ? 64
                               : traits.address_pins <= 20 ? 20
                                                           : 32}};
  return {{"name", view.options().name},
          {"identity", view.identity()},
          {"version", CITCAT_VERSION},
          {"processor", cpu_model_name(view.file().recording().initial.model)},
          {"from", 0},
          {"to", run_length(view, view)},
          {"known_to", known_to(view)},
          {"complete", view.knows_all()},
          {"has", std::move(has)},
          {"verdict", verdict_of(view)},
          {"unusual", unusual_of(view)},
          {"totals", totals_of(view.index())}};
}

// ---- the timeline

/// Instructions that are replayed to know more of them than the index does.
constexpr std::uint64_t kMostReplayed = 1 << 20;

struct BucketColumn {
  const char* name;
  std::uint32_t RunBucket::*member;
};
constexpr std::array<BucketColumn, 8> kColumns{{{"interrupts", &RunBucket::interrupts},
                                                {"exceptions", &RunBucket::exceptions},
                                                {"software_interrupts", &RunBucket::software},
                                                {"system_calls", &RunBucket::calls},
                                                {"port_reads", &RunBucket::port_reads},
                                                {"port_writes", &RunBucket::port_writes},
                                                {"external_writes", &RunBucket::external_writes},
                                                {"halts", &RunBucket::halts}}};

/// `count` buckets from `from` on, each `width` instructions, put together from those of `index`.
/// What the end of the run delivers has its position, and belongs to the last one.
std::vector<RunBucket> gathered(const RunIndex& index, std::uint64_t from, std::uint64_t width,
                                std::size_t count, bool has_end) {
  std::vector<RunBucket> buckets(count);
  for (std::size_t i = 0; i < index.buckets().size(); ++i) {
    const std::uint64_t at = index.from() + i * index.width();
    if (at + index.width() <= from) continue;
    std::uint64_t number = at < from ? 0 : (at - from) / width;
    if (number >= count && !has_end) break;
    number = std::min<std::uint64_t>(number, count - 1);
    buckets[static_cast<std::size_t>(number)].add(index.buckets()[i]);
  }
  return buckets;
}

Json columns_of(const std::vector<RunBucket>& buckets,
                const std::function<std::uint32_t(std::uint32_t)>& process) {
  Json json = Json::object();
  for (std::size_t level = 0; level < 4; ++level) {
    Json column = Json::array();
    bool any = false;
    for (const RunBucket& b : buckets) {
      any = any || b.levels[level] != 0;
      column.push_back(b.levels[level]);
    }
    if (any) json[fmt::format("level{}", level)] = std::move(column);
  }
  for (const BucketColumn& c : kColumns) {
    Json column = Json::array();
    bool any = false;
    for (const RunBucket& b : buckets) {
      any = any || b.*c.member != 0;
      column.push_back(b.*c.member);
    }
    if (any) json[c.name] = std::move(column);
  }
  Json column = Json::array();
  for (const RunBucket& b : buckets) {
    column.push_back(b.of_process != 0 ? Json(process(b.process)) : Json());
  }
  json["process"] = std::move(column);
  return json;
}

/// What happened in each of `count` parts of a stretch.
Json answer_timeline(RunView& view, const Query& query) {
  const std::uint64_t whole = run_length(view, view);
  const std::uint64_t from = query.number("from", 0, kEverything);
  const std::uint64_t to = query.number("to", whole, kEverything);
  const std::uint64_t most = query.number("count", 800, 4000);
  if (to <= from || most == 0) throw UsageError("to: expected more than from");
  const RunIndex& all = view.index();
  std::uint64_t width = std::max<std::uint64_t>((to - from + most - 1) / most, 1);
  // Parts of the run that are known already are put together whole.
  const bool is_known = all.width() <= width || to - from > kMostReplayed;
  if (is_known) width = (width + all.width() - 1) / all.width() * all.width();
  const auto count = static_cast<std::size_t>((to - from + width - 1) / width);
  Json json = {{"from", from}, {"to", to}, {"width", width}, {"known_to", known_to(view)}};
  const bool has_end = to >= whole;
  if (is_known) {
    json["columns"] = columns_of(gathered(all, from, width, count, has_end),
                                 [](std::uint32_t number) { return number; });
  } else {
    const std::uint64_t known = std::min(to, all.told_to());
    // What is delivered at the first position comes before whoever arrives there.
    if (known > from) view.go_to(WantedMoment{{from - (from != 0 ? 1 : 0), 0}, std::nullopt});
    RunIndex near(from, width, count + 1);
    near.listen_to(view.machine());
    const Moment end{0, {known, has_end ? 1u : 0}};
    if (known > from && !view.listen(near, Detail::nothing, end, view.limit())) {
      json["known_to"] = near.told_to();
    }
    near.end(known);
    std::map<AddressSpaceId, std::uint32_t> numbers;
    for (std::size_t i = 0; i < all.processes().size(); ++i) {
      numbers[all.processes()[i].space] = static_cast<std::uint32_t>(i);
    }
    json["columns"] = columns_of(gathered(near, from, width, count, has_end), [&](std::uint32_t n) {
      return numbers[near.processes()[n].space];
    });
  }
  return json;
}

// ---- events

const char* kind_name(RunEvent::Kind kind) {
  constexpr std::array<const char*, 12> kNames{"interrupt",
                                               "nmi",
                                               "smi",
                                               "exception",
                                               "software_interrupt",
                                               "port_read",
                                               "port_write",
                                               "external_write",
                                               "halt",
                                               "shutdown",
                                               "process",
                                               "translation_dropped"};
  return kNames[static_cast<std::size_t>(kind)];
}

Json event_json(const RunView& view, const RunEvent& event) {
  using Kind = RunEvent::Kind;
  Json json = {{"moment", fmt::format("{}", event.instruction)}, {"kind", kind_name(event.kind)}};
  switch (event.kind) {
    case Kind::interrupt:
    case Kind::nmi:
    case Kind::exception:
    case Kind::software:
      json["vector"] = fmt::format("{:02x}", event.vector);
      if (event.kind == Kind::exception && event.vector == 14) {
        json["address"] = linear_text(view, LinearAddr{event.value});
      }
      break;
    case Kind::port_read:
    case Kind::port_write:
      json["port"] = fmt::format("{:04x}", event.port);
      json["value"] = fmt::format("{:0{}x}", event.value, 2 * event.size);
      break;
    case Kind::external_write:
      json["physical"] = physical_text(view, PhysAddr{event.value});
      json["size"] = event.size;
      break;
    case Kind::translation_dropped:
      json["address"] = linear_text(view, LinearAddr{event.value});
      break;
    case Kind::process:
      json["process"] = view.index().process_label(static_cast<std::size_t>(event.value));
      break;
    default:
      break;
  }
  return json;
}

/// Interrupts, exceptions, ports and what else happened, one by one.
Json answer_events(RunView& view, const Query& query) {
  const std::uint64_t from = query.number("from", 0, kEverything);
  const std::uint64_t to = query.number("to", kEverything, kEverything);
  const std::uint64_t limit = query.number("limit", 200, 5000);
  const std::string kinds = "," + query.text("kinds") + ",";
  const bool has_processes = !cpu_traits(view.file().recording().initial.model)
                                  .sixteen_bit;  // page tables tell them apart
  const auto& events = view.index().events();
  auto event = std::partition_point(events.begin(), events.end(),
                                    [&](const RunEvent& e) { return e.instruction < from; });
  Json list = Json::array();
  bool more = false;
  for (; event != events.end() && event->instruction < to; ++event) {
    if (event->kind == RunEvent::Kind::process && !has_processes) continue;
    if (kinds != ",," &&
        kinds.find("," + std::string(kind_name(event->kind)) + ",") == std::string::npos) {
      continue;
    }
    more = list.size() >= limit;
    if (more) break;
    list.push_back(event_json(view, *event));
  }
  return {{"events", std::move(list)},
          {"more", more},
          {"kept_to", std::min(view.index().events_to(), view.index().told_to())}};
}

Json answer_processes(RunView& view, const Query&) {
  const RunIndex& index = view.index();
  Json list = Json::array();
  for (std::size_t i = 0; i < index.processes().size(); ++i) {
    const RunProcess& p = index.processes()[i];
    Json json = {{"number", i},
                 {"address_space", fmt::format("{:08x}", p.space)},
                 {"label", index.process_label(i)},
                 {"first", fmt::format("{}", p.first)},
                 {"last", fmt::format("{}", p.last)},
                 {"instructions", p.instructions},
                 {"switches", p.switches}};
    if (p.calls != 0) json["system_calls"] = p.calls;
    list.push_back(std::move(json));
  }
  return {{"processes", std::move(list)}, {"known_to", index.told_to()}};
}

/// System calls that begin in a stretch, with their arguments and results.
Json answer_syscalls(RunView& view, const Query& query) {
  const std::uint64_t from = query.number("from", 0, kEverything);
  const std::uint64_t to = query.number("to", kEverything, kEverything);
  const std::uint64_t limit = query.number("limit", 200, 5000);
  const std::string text = query.text("text");
  Json list = Json::array();
  bool more = false;
  for (const RunCall& call : view.index().calls()) {
    if (call.begin < from || call.begin >= to) continue;
    if (!text.empty() && call.text.find(text) == std::string::npos) continue;
    more = list.size() >= limit;
    if (more) break;
    Json json = {{"moment", fmt::format("{}", call.begin)},
                 {"process", view.index().process_label(call.process)},
                 {"text", call.text}};
    if (call.ended) {
      json["ends"] = fmt::format("{}", call.end);
      json["result"] = call.result;
      if (call.failed) json["failed"] = true;
    }
    list.push_back(std::move(json));
  }
  return {{"system_calls", std::move(list)},
          {"more", more},
          {"all_kept", view.index().has_all_calls()}};
}

// ---- console

/// What the program printed: lines of serial and debug ports, each with the moment of its first
/// character; and the text screen at a moment.
Json answer_console(RunView& view, const Query& query) {
  const std::uint64_t limit = query.number("limit", 500, 5000);
  view.go_to(query);
  struct Line {
    std::uint16_t port;
    std::uint64_t first;
    std::string text;
  };
  std::vector<Line> lines;
  std::map<std::uint16_t, std::size_t> open;  // the line of each port that goes on
  for (const ConsoleCharacter& c : view.index().console()) {
    auto line = open.find(c.port);
    if (c.character == '\n') {
      open.erase(c.port);
      continue;
    }
    if (static_cast<unsigned char>(c.character) < ' ' && c.character != '\t') continue;
    if (line == open.end()) {
      line = open.emplace(c.port, lines.size()).first;
      lines.push_back({c.port, c.instruction, {}});
    }
    lines[line->second].text += c.character;
  }
  Json json = here(view);
  json["more"] = lines.size() > limit;
  json["lines"] = Json::array();
  const std::size_t first = lines.size() - std::min<std::size_t>(lines.size(), limit);
  for (std::size_t i = first; i < lines.size(); ++i) {
    json["lines"].push_back({{"moment", fmt::format("{}", lines[i].first)},
                             {"port", fmt::format("{:04x}", lines[i].port)},
                             {"text", lines[i].text}});
  }
  const Json screen = text_screen(view);
  if (!screen.is_null()) json["screen"] = screen;
  return json;
}

}  // namespace

std::vector<Question> run_questions() {
  return {{"run", {}, answer_run},
          {"timeline", {"from", "to", "count"}, answer_timeline},
          {"events", {"from", "to", "kinds", "limit"}, answer_events},
          {"processes", {}, answer_processes},
          {"syscalls", {"from", "to", "text", "limit"}, answer_syscalls},
          {"console", {"at", "limit"}, answer_console}};
}

}  // namespace citcat::view
