#include "debugger/adapter/adapter.h"

#include <fmt/format.h>

#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat::dap {

Adapter::Adapter(Line& line, Open open)
    : line_(line), open_(std::move(open)), interrupt_([&line] { return line.is_interrupted(); }) {}
Adapter::~Adapter() = default;

const std::vector<Adapter::Handler>& Adapter::handlers() {
  static const std::vector<Handler> all = {
      {"initialize", &Adapter::initialize},
      {"launch", &Adapter::launch},
      {"attach", &Adapter::launch},
      {"configurationDone", &Adapter::configuration_done},
      {"disconnect", &Adapter::disconnect},
      {"terminate", &Adapter::disconnect},
      {"restart", &Adapter::restart},
      {"threads", &Adapter::threads},
      {"stackTrace", &Adapter::stack_trace},
      {"scopes", &Adapter::scopes},
      {"variables", &Adapter::variables},
      {"readMemory", &Adapter::read_memory},
      {"disassemble", &Adapter::disassemble},
      {"evaluate", &Adapter::evaluate},
      {"dataBreakpointInfo", &Adapter::data_breakpoint_info},
      {"setBreakpoints", &Adapter::set_breakpoints},
      {"setFunctionBreakpoints", &Adapter::set_function_breakpoints},
      {"setInstructionBreakpoints", &Adapter::set_instruction_breakpoints},
      {"setDataBreakpoints", &Adapter::set_data_breakpoints},
      {"setExceptionBreakpoints", &Adapter::set_exception_breakpoints},
      {"continue", &Adapter::go_on},
      {"reverseContinue", &Adapter::reverse_continue},
      {"next", &Adapter::next},
      {"stepIn", &Adapter::step_in},
      {"stepOut", &Adapter::step_out},
      {"stepBack", &Adapter::step_back},
      {"restartFrame", &Adapter::restart_frame},
      {"pause", &Adapter::pause},
      {"citcat/seek", &Adapter::seek},
  };
  return all;
}

void Adapter::serve() {
  for (std::string message; !ends_ && line_.receive(message);) {
    Request request;
    try {
      request = parse_request(message);
    } catch (const UsageError& error) {
      refuse(request, error.what());
      continue;
    }
    answer(request);
    for (auto& [name, body] : later_) send_event(name, std::move(body));
    later_.clear();
    finish_move();
  }
}

void Adapter::answer(const Request& request) {
  for (const Handler& handler : handlers()) {
    if (request.command != handler.command) continue;
    try {
      respond(request, (this->*handler.answer)(Arguments(request.arguments)));
    } catch (const Error& error) {
      pending_.reset();
      later_.clear();
      refuse(request, error.what());
    }
    return;
  }
  refuse(request, "citcat does not answer '" + printable_text(request.command.substr(0, 64)) + "'");
}

void Adapter::respond(const Request& request, Json body) {
  Json message{{"type", "response"},
               {"request_seq", request.number},
               {"success", true},
               {"command", request.command}};
  if (!body.is_null()) message["body"] = std::move(body);
  line_.send(std::move(message));
}

void Adapter::refuse(const Request& request, const std::string& why) {
  const Json error{{"id", 1}, {"format", why}, {"showUser", true}};
  line_.send({{"type", "response"},
              {"request_seq", request.number},
              {"success", false},
              {"command", request.command},
              {"message", why},
              {"body", {{"error", error}}}});
}

void Adapter::send_event(const char* name, Json body) {
  Json message{{"type", "event"}, {"event", name}};
  if (!body.is_null()) message["body"] = std::move(body);
  line_.send(std::move(message));
}

// ---------------------------------------------------------------------------------------------
// The session

Json Adapter::initialize(const Arguments& arguments) {
  if (arguments.has("linesStartAt1") && !arguments.flag("linesStartAt1")) first_line_ = 0;
  Json body = Json::object();
  for (const char* const can :
       {"supportsConfigurationDoneRequest", "supportsFunctionBreakpoints",
        "supportsInstructionBreakpoints", "supportsDataBreakpoints", "supportsDataBreakpointBytes",
        "supportsStepBack", "supportsReadMemoryRequest", "supportsDisassembleRequest",
        "supportsSteppingGranularity", "supportsEvaluateForHovers", "supportsRestartRequest",
        "supportsRestartFrame", "supportsTerminateRequest", "supportsDelayedStackTraceLoading"}) {
    body[can] = true;
  }
  return body;
}

Json Adapter::launch(const Arguments& arguments) {
  if (!machine_.processors.empty()) throw UsageError("this session has a recording already");
  constexpr std::size_t kMostFiles = 256;
  LaunchWish wish;
  wish.recording = arguments.text("recording").value_or(arguments.text("program").value_or(""));
  wish.at = arguments.text("at").value_or("");
  wish.symbols = arguments.texts("symbols", kMostFiles);
  wish.unchecked = arguments.flag("unchecked");
  OpenedMachine opened = open_(wish);
  machine_ = std::move(opened);
  if (machine_.turns) {
    std::vector<DebugTarget*> targets;
    for (const OpenedMachine::Processor& p : machine_.processors)
      targets.push_back(&p.debuggee->target());
    together_.emplace(std::move(targets), *std::exchange(machine_.turns, std::nullopt),
                      machine_.foreign);
  }
  go_to_begin();
  later_.emplace_back("initialized", Json());
  return {};
}

/// Where the session begins: "P:N" is the place of one processor, which the others follow.
void Adapter::go_to_begin() {
  const std::optional<ProcessorPlace> begin = split_processor(machine_.at);
  const std::size_t count = machine_.processors.size();
  if (!begin || begin->processor.value_or(0) >= count) {
    throw UsageError(
        fmt::format("at: expected a position, or P:N with a processor from 0 to {}, found '{}'",
                    count - 1, machine_.at));
  }
  current_ = begin->processor.value_or(0);
  const bool of_all = begin->place == "begin" || begin->place == "end";
  if (!together_ || (of_all && !begin->processor)) {
    for (std::size_t p = 0; p < count; ++p) go_to(p, begin->place);
    return;
  }
  const bool any = begin->place == "divergence" && !begin->processor;
  for (;; ++current_) {
    try {
      go_to(current_, begin->place);
      return follow(current_);
    } catch (const UsageError&) {
      if (!any || current_ + 1 == count) throw;  // of the others one may diverge
    }
  }
}

/// Wherever somebody asks to go. A processor of several may end before.
void Adapter::go_to(std::size_t processor, const std::string& where) {
  Monitor& monitor = machine_.processors[processor].debuggee->monitor();
  const std::string reached = monitor.seek(where, interrupt_);
  if (reached.starts_with(Monitor::kEndsBefore)) {
    later_.emplace_back("output", Json{{"category", "important"}, {"output", reached}});
    return;
  }
  const std::string why = monitor.divergence_text();
  if (!why.empty()) {
    later_.emplace_back("output", Json{{"category", "important"}, {"output", why}});
  }
}

Json Adapter::configuration_done(const Arguments&) {
  debuggee(0);
  configured_ = true;
  tell_stopped(current_, "entry", "", {});
  return {};
}

Json Adapter::disconnect(const Arguments&) {
  ends_ = true;
  return {};
}

Json Adapter::restart(const Arguments&) {
  debuggee(0);
  go_to_begin();
  tell_stopped(current_, "entry", "", {});
  return {};
}

Json Adapter::threads(const Arguments&) {
  Json threads = Json::array();
  for (std::size_t p = 0; p < machine_.processors.size(); ++p) {
    threads.push_back({{"id", p + 1}, {"name", machine_.processors[p].name}});
  }
  return {{"threads", std::move(threads)}};
}

std::size_t Adapter::processor_of(const Arguments& arguments) const {
  const std::int64_t id = arguments.integer("threadId").value_or(1);
  if (id < 1 || static_cast<std::uint64_t>(id) > machine_.processors.size()) {
    throw UsageError(fmt::format("threadId: there is no processor {}", id));
  }
  return static_cast<std::size_t>(id - 1);
}

Debuggee& Adapter::debuggee(std::size_t processor) {
  if (machine_.processors.empty()) {
    throw UsageError("there is no recording yet: `launch` opens one");
  }
  if (processor >= machine_.processors.size()) {
    throw UsageError(fmt::format("there is no processor {}", processor + 1));
  }
  return *machine_.processors[processor].debuggee;
}

}  // namespace citcat::dap
