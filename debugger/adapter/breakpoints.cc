#include "debugger/adapter/breakpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

namespace citcat::dap {
namespace {

constexpr std::int64_t kMostLines = 10'000'000;
constexpr std::uint32_t kMostWatched = 4096;

Json refused(int number, const std::string& why) {
  return {{"id", number}, {"verified", false}, {"message", why}};
}

}  // namespace

std::string data_name(LinearAddr at, std::uint32_t bytes) {
  return fmt::format("{:#x}/{}", at.value, bytes);
}

Breakpoints::Set& Breakpoints::begin_set(const std::string& key, const char* reason) {
  Set& set = sets_[key];
  if (sets_.size() > kMost) {
    sets_.erase(key);
    throw UsageError("there are breakpoints in too many files");
  }
  set = {reason, {}};
  return set;
}

Json Breakpoints::answer_each(const Arguments& arguments,
                              const std::function<Json(const Arguments&, int)>& answer) {
  Json all = Json::array();
  arguments.each("breakpoints", kMost, [&](const Arguments& wanted) {
    const int number = ++last_;
    try {
      all.push_back(answer(wanted, number));
    } catch (const UsageError& e) {
      all.push_back(refused(number, e.what()));
    }
  });
  return all;
}

Json Breakpoints::set_lines(const Arguments& arguments, const Debuggee& debuggee) {
  const Arguments source = arguments.object("source");
  const std::string path = source.text("path").value_or(source.text("name").value_or(""));
  if (path.empty()) throw UsageError("source: expected a path");
  Set& set = begin_set("line " + path, "breakpoint");
  return answer_each(arguments, [&](const Arguments& wanted, int number) -> Json {
    const auto line = static_cast<int>(wanted.integer("line", 0, 1, kMostLines));
    if (debuggee.lines().empty()) {
      return refused(number, SourceLines::are_built()
                                 ? "no program with source lines was given (symbols)"
                                 : "this build reads no source lines (libdw)");
    }
    const std::vector<SourcePlace> places = debuggee.lines().at_line(path, line);
    if (places.empty()) return refused(number, "there is no code of this line");
    for (const SourcePlace& place : places) {
      set.stops.push_back({StopKind::hardware_breakpoint, place.begin, 1, number});
    }
    return {{"id", number},
            {"verified", true},
            {"line", places.front().line},
            {"instructionReference", memory_reference(places.front().begin)}};
  });
}

Json Breakpoints::set_functions(const Arguments& arguments, const Debuggee& debuggee) {
  Set& set = begin_set("functions", "function breakpoint");
  return answer_each(arguments, [&](const Arguments& wanted, int number) -> Json {
    const auto found = debuggee.symbols().named(wanted.required_text("name"));
    if (!found) return refused(number, "no symbol has this name");
    const LinearAddr at = found->symbol->address;
    set.stops.push_back({StopKind::hardware_breakpoint, at, 1, number});
    return {{"id", number}, {"verified", true}, {"instructionReference", memory_reference(at)}};
  });
}

Json Breakpoints::set_instructions(const Arguments& arguments) {
  Set& set = begin_set("instructions", "instruction breakpoint");
  return answer_each(arguments, [&](const Arguments& wanted, int number) -> Json {
    const std::uint64_t base =
        parse_reference(wanted.required_text("instructionReference"), "instructionReference");
    const std::int64_t offset = wanted.integer("offset", 0, -kMostOffset, kMostOffset);
    const LinearAddr at{base + static_cast<std::uint64_t>(offset)};
    set.stops.push_back({StopKind::hardware_breakpoint, at, 1, number});
    return {{"id", number}, {"verified", true}, {"instructionReference", memory_reference(at)}};
  });
}

Breakpoints::Stop Breakpoints::data_stop(const Arguments& wanted, int number) {
  const std::string name = wanted.required_text("dataId");
  const std::string type = wanted.text("accessType").value_or("write");
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) throw UsageError("dataId: expected one of this session");
  const std::uint64_t at = parse_reference(name.substr(0, slash), "dataId");
  const std::uint64_t bytes = parse_reference(name.substr(slash + 1), "dataId");
  if (bytes == 0 || bytes > kMostWatched) {
    throw UsageError(fmt::format("dataId: expected 1 to {} bytes", kMostWatched));
  }
  StopKind kind = StopKind::write_watchpoint;
  if (type == "read") kind = StopKind::read_watchpoint;
  if (type == "readWrite") kind = StopKind::access_watchpoint;
  return {kind, LinearAddr{at}, static_cast<std::uint32_t>(bytes), number};
}

Json Breakpoints::set_data(const Arguments& arguments,
                           const std::function<bool(LinearAddr, std::uint32_t)>& is_mapped) {
  Set& set = begin_set("data", "data breakpoint");
  return answer_each(arguments, [&](const Arguments& wanted, int number) -> Json {
    const Stop stop = data_stop(wanted, number);
    set.stops.push_back(stop);
    if (is_mapped(stop.at, stop.size)) return {{"id", number}, {"verified", true}};
    return refused(number, "nothing is mapped there yet; it takes effect when something is");
  });
}

void Breakpoints::put_into(DebugTarget& target) const {
  target.remove_all();
  for (const auto& [key, set] : sets_) {
    for (const Stop& stop : set.stops) {
      target.insert(stop.kind, target.address(stop.at.value), stop.size);
    }
  }
}

template <class F>
void Breakpoints::each_met(const MoveEnd& end, LinearAddr pc, F&& f) const {
  for (const auto& [key, set] : sets_) {
    for (const Stop& stop : set.stops) {
      const bool watches = stop.kind >= StopKind::write_watchpoint;
      const bool met = end.why == MoveEnd::Why::watchpoint
                           ? watches && stop.kind == end.kind && stop.at == end.watched
                           : !watches && end.why == MoveEnd::Why::breakpoint && stop.at == pc;
      if (met) f(set, stop);
    }
  }
}

std::vector<int> Breakpoints::met(const MoveEnd& end, LinearAddr pc) const {
  std::vector<int> numbers;
  each_met(end, pc, [&](const Set&, const Stop& stop) {
    if (std::find(numbers.begin(), numbers.end(), stop.number) == numbers.end()) {
      numbers.push_back(stop.number);
    }
  });
  return numbers;
}

std::string Breakpoints::reason(const MoveEnd& end, LinearAddr pc) const {
  std::string reason = end.why == MoveEnd::Why::watchpoint ? "data breakpoint" : "breakpoint";
  each_met(end, pc, [&](const Set& set, const Stop&) { reason = set.reason; });
  return reason;
}

}  // namespace citcat::dap
