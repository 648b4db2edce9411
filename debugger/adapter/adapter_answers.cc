// Answers about the moment at which a processor is: stack, registers, memory, code.

#include <fmt/format.h>

#include <algorithm>

#include "debugger/adapter/adapter.h"
#include "debugger/adapter/disassembly.h"
#include "debugger/adapter/evaluation.h"
#include "debugger/adapter/register_groups.h"
#include "events/position_text.h"
#include "formats/io/error.h"

namespace citcat::dap {
namespace {

constexpr std::size_t kGroups = std::size(kRegisterGroups);
constexpr std::int64_t kMostLevels = 4096, kMostBytes = 1 << 20, kMostInstructions = 4096;

/// Numbers of frames and of what has variables say the processor and the level, or the group.
constexpr std::size_t kLevelBits = 12, kGroupBits = 4;
constexpr std::int64_t kCallReferences = std::int64_t{1} << 20;

std::int64_t frame_number(std::size_t processor, std::size_t level) {
  return static_cast<std::int64_t>(processor << kLevelBits | level) + 1;
}

}  // namespace

Json Adapter::source_json(LinearAddr at, Json frame) const {
  const std::optional<SourcePlace> place = machine_.processors.front().debuggee->lines().find(at);
  frame["line"] = 0;
  frame["column"] = 0;
  if (!place) return frame;
  const std::string name = place->file.substr(place->file.rfind('/') + 1);
  frame["source"] = {{"name", name}, {"path", place->file}};
  frame["line"] = place->line - 1 + first_line_;
  frame["column"] = first_line_;
  return frame;
}

Json Adapter::stack_trace(const Arguments& arguments) {
  const std::size_t p = processor_of(arguments);
  Debuggee& its = debuggee(p);
  const auto first = static_cast<std::size_t>(arguments.integer("startFrame", 0, 0, kMostLevels));
  const auto wanted = static_cast<std::size_t>(arguments.integer("levels", 0, 0, kMostLevels));
  const std::vector<StackLevel>& levels = its.stack_levels(interrupt_);
  const std::size_t there = std::min<std::size_t>(levels.size(), kMostLevels - 1);
  const std::size_t end = wanted == 0 ? there : std::min(there, first + wanted);
  Json frames = Json::array();
  for (std::size_t i = first; i < end; ++i) {
    const LinearAddr at = levels[i].at;
    std::string name = its.symbol_text(at);
    if (name.empty()) name = memory_reference(at);
    frames.push_back(source_json(at, {{"id", frame_number(p, i)},
                                      {"name", std::move(name)},
                                      {"canRestart", levels[i].called.has_value()},
                                      {"instructionPointerReference", memory_reference(at)}}));
  }
  return {{"stackFrames", std::move(frames)}, {"totalFrames", there}};
}

Json Adapter::scopes(const Arguments& arguments) {
  const std::int64_t number = arguments.integer("frameId", 0, 1, std::int64_t{1} << 40) - 1;
  const auto p = static_cast<std::size_t>(number) >> kLevelBits;
  const auto level = static_cast<std::size_t>(number) & ((1u << kLevelBits) - 1);
  Debuggee& its = debuggee(p);
  current_ = p;  // what is asked for without a processor is of the frame that somebody looks at
  Json scopes = Json::array();
  const auto add = [&](const char* name, std::int64_t variables, bool expensive) {
    Json scope{{"name", name}, {"variablesReference", variables}, {"expensive", expensive}};
    if (std::string_view(name) == "Registers") scope["presentationHint"] = "registers";
    scopes.push_back(std::move(scope));
  };
  add("Run", kCallReferences + number + 1, false);
  if (level == 0) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      if (registers_of(its, kRegisterGroups[g]).empty()) continue;
      add(group_name(kRegisterGroups[g]), static_cast<std::int64_t>(p << kGroupBits | g) + 1,
          g != 0);
    }
  }
  return {{"scopes", std::move(scopes)}};
}

Json Adapter::variables(const Arguments& arguments) {
  const std::int64_t number =
      arguments.integer("variablesReference", 0, 1, std::int64_t{1} << 40) - 1;
  Json variables;
  if (number >= kCallReferences) {
    const auto frame = static_cast<std::size_t>(number - kCallReferences);
    variables = call_json(frame >> kLevelBits, frame & ((1u << kLevelBits) - 1));
  } else {
    const auto reference = static_cast<std::size_t>(number);
    variables = registers_json(reference >> kGroupBits, reference & ((1u << kGroupBits) - 1));
  }
  return {{"variables", std::move(variables)}};
}

Json Adapter::registers_json(std::size_t processor, std::size_t group) {
  Debuggee& its = debuggee(processor);
  if (group >= kGroups) throw UsageError("variablesReference: there is no such");
  Json variables = Json::array();
  for (const ShownRegister& r : registers_of(its, kRegisterGroups[group])) {
    Json variable{{"name", r.name}, {"value", r.value}, {"variablesReference", 0}};
    if (r.pointer) {
      const LinearAddr at = its.target().address(*r.pointer);
      variable["memoryReference"] = memory_reference(at);
      const std::string symbol = its.symbol_text(at);
      if (!symbol.empty()) variable["value"] = r.value + " <" + symbol + ">";
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

/// Where the run is, or where a call was.
Json Adapter::call_json(std::size_t processor, std::size_t level) {
  Debuggee& its = debuggee(processor);
  const std::vector<StackLevel>& levels = its.stack_levels(interrupt_);
  if (level >= levels.size()) throw UsageError("frameId: there is no such frame");
  const StackLevel& here = levels[level];
  Json variables = Json::array();
  const auto add = [&](const char* name, const std::string& value) {
    variables.push_back({{"name", name}, {"value", value}, {"variablesReference", 0}});
  };
  if (level == 0) add("position", position_text(its.target().timeline().position()));
  if (here.called) add(here.is_interrupt ? "entered at" : "called at", position_text(*here.called));
  if (here.returns) add("returns to", memory_reference(*here.returns));
  if (level == 0 && !its.monitor().divergence_text().empty()) {
    add("divergence", its.monitor().divergence_text());
  }
  return variables;
}

Json Adapter::read_memory(const Arguments& arguments) {
  Debuggee& its = debuggee(current_);
  const std::uint64_t base =
      parse_reference(arguments.required_text("memoryReference"), "memoryReference");
  const std::int64_t offset = arguments.integer("offset", 0, -kMostOffset, kMostOffset);
  const std::int64_t count = arguments.integer("count", 0, 0, kMostBytes);
  const LinearAddr at = its.target().address(base + static_cast<std::uint64_t>(offset));
  const std::vector<std::uint8_t> bytes = its.target().read(at, static_cast<std::size_t>(count));
  Json body{{"address", memory_reference(at)}};
  const auto unread = static_cast<std::uint64_t>(count) - bytes.size();
  if (unread != 0) body["unreadableBytes"] = unread;
  body["data"] = base64_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return body;
}

Json Adapter::disassemble(const Arguments& arguments) {
  Debuggee& its = debuggee(current_);
  const std::uint64_t base =
      parse_reference(arguments.required_text("memoryReference"), "memoryReference");
  const std::int64_t bytes = arguments.integer("offset", 0, -kMostOffset, kMostOffset);
  const std::int64_t offset =
      arguments.integer("instructionOffset", 0, -kMostInstructions, kMostInstructions);
  const std::int64_t count = arguments.integer("instructionCount", 0, 0, kMostInstructions);
  const LinearAddr at = its.target().address(base + static_cast<std::uint64_t>(bytes));
  Json instructions = Json::array();
  std::optional<SourcePlace> last;
  for (const DisassembledLine& line :
       dap::disassemble(its, at, offset, static_cast<std::size_t>(count))) {
    std::string hex;
    for (const std::uint8_t b : line.bytes)
      hex += fmt::format("{}{:02x}", hex.empty() ? "" : " ", b);
    Json json{{"address", fmt::format("0x{:016x}", line.at.value)},
              {"instructionBytes", hex},
              {"instruction", line.text}};
    if (!line.valid) json["presentationHint"] = "invalid";
    const std::string symbol = its.symbol_text(line.at);
    if (!symbol.empty() && symbol.find('+') == std::string::npos) json["symbol"] = symbol;
    const std::optional<SourcePlace> place = its.lines().find(line.at);
    if (place && (!last || place->line != last->line || place->file != last->file)) {
      json = source_json(line.at, std::move(json));
      json["location"] = std::move(json["source"]);
      json.erase("source");
    }
    last = place;
    instructions.push_back(std::move(json));
  }
  return {{"instructions", std::move(instructions)}};
}

Json Adapter::evaluate(const Arguments& arguments) {
  std::size_t p = current_;
  if (const auto frame = arguments.integer("frameId")) {
    p = static_cast<std::size_t>(*frame - 1) >> kLevelBits;
  }
  Debuggee& its = debuggee(p);
  const std::string expression = arguments.required_text("expression");
  const bool asks_monitor = arguments.text("context").value_or("") == "repl";
  try {
    const Evaluated found = dap::evaluate(its, expression);
    std::string text = fmt::format("0x{:0{}x}", found.value, 2 * found.bytes);
    if (!found.symbol.empty()) text += " <" + found.symbol + ">";
    return {{"result", text},
            {"variablesReference", 0},
            {"memoryReference", memory_reference(its.target().address(found.value))}};
  } catch (const UsageError&) {
    if (!asks_monitor) throw;
  }
  // The commands that gdb has after `monitor`; branches are gdb's alone.
  if (expression.starts_with("fork"))
    throw UsageError("fork: only gdb can open branches (citcat debug)");
  const Moment before = its.target().timeline().moment();
  const std::string text = its.monitor().run(expression, interrupt_);
  if (its.target().timeline().moment() != before) {
    follow(p);
    tell_stopped(p, "goto", "", {});
  }
  return {{"result", text}, {"variablesReference", 0}};
}

Json Adapter::data_breakpoint_info(const Arguments& arguments) {
  Debuggee& its = debuggee(current_);
  const std::string name = arguments.required_text("name");
  const auto bytes = static_cast<std::uint32_t>(arguments.integer("bytes", 0, 0, 4096));
  LinearAddr at;
  std::uint32_t size = bytes == 0 ? 4 : bytes;
  if (arguments.flag("asAddress")) {
    at = its.target().address(parse_reference(name, "name"));
    if (bytes == 0) size = 1;
  } else if (register_named(its, name)) {
    return {{"dataId", nullptr},
            {"description", "registers cannot be watched; memory can, by its address"}};
  } else {
    const Evaluated found = dap::evaluate(its, name);
    at = found.place.value_or(its.target().address(found.value));
    if (found.place && bytes == 0) size = found.bytes;
  }
  return {{"dataId", data_name(at, size)},
          {"description", fmt::format("{} bytes at {}", size, memory_reference(at))},
          {"accessTypes", {"read", "write", "readWrite"}},
          {"canPersist", true}};
}

}  // namespace citcat::dap
