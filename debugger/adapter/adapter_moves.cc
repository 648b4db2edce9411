// Moves, and what stops them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "debugger/adapter/adapter.h"
#include "formats/io/error.h"

namespace citcat::dap {
namespace {

Unit unit_of(const Arguments& arguments) {
  return arguments.text("granularity").value_or("statement") == "instruction" ? Unit::instruction
                                                                              : Unit::line;
}

}  // namespace

// ---------------------------------------------------------------------------------------------
// Breakpoints

void Adapter::put_breakpoints() {
  for (OpenedMachine::Processor& p : machine_.processors) {
    breakpoints_.put_into(p.debuggee->target());
  }
}

Json Adapter::set_breakpoints(const Arguments& arguments) {
  Json answer = breakpoints_.set_lines(arguments, debuggee(0));
  if (first_line_ == 0) {
    for (Json& each : answer) {
      if (each.contains("line")) each["line"] = each["line"].get<int>() - 1;
    }
  }
  put_breakpoints();
  return {{"breakpoints", std::move(answer)}};
}

Json Adapter::set_function_breakpoints(const Arguments& arguments) {
  Json answer = breakpoints_.set_functions(arguments, debuggee(0));
  put_breakpoints();
  return {{"breakpoints", std::move(answer)}};
}

Json Adapter::set_instruction_breakpoints(const Arguments& arguments) {
  debuggee(0);
  Json answer = breakpoints_.set_instructions(arguments);
  put_breakpoints();
  return {{"breakpoints", std::move(answer)}};
}

Json Adapter::set_data_breakpoints(const Arguments& arguments) {
  debuggee(0);
  Json answer = breakpoints_.set_data(arguments, [this](LinearAddr at, std::uint32_t size) {
    return std::any_of(machine_.processors.begin(), machine_.processors.end(),
                       [&](const OpenedMachine::Processor& p) {
                         const DebugTarget& target = p.debuggee->target();
                         return target.is_mapped(target.address(at.value), size);
                       });
  });
  put_breakpoints();
  return {{"breakpoints", std::move(answer)}};
}

/// There are none; editors send the request all the same.
Json Adapter::set_exception_breakpoints(const Arguments&) { return {}; }

// ---------------------------------------------------------------------------------------------
// Moves

Json Adapter::move(const Arguments& arguments, const char* reason, Move move) {
  const std::size_t p = processor_of(arguments);
  debuggee(p);
  const bool alone = arguments.flag("singleThread");
  pending_ = Pending{p, reason, [this, p, alone, move = std::move(move)] {
                       const MoveEnd end = move(debuggee(p));
                       if (!alone) follow(p);
                       return MachineMoveEnd{end, p};
                     }};
  return {};
}

/// A move that any of the processors may end.
Json Adapter::move_all(const Arguments& arguments,
                       MachineMoveEnd (Adapter::*how)(std::size_t, bool)) {
  const std::size_t p = processor_of(arguments);
  debuggee(p);
  const bool alone = !together_ || arguments.flag("singleThread");
  pending_ = Pending{p, "step", [this, p, alone, how] { return (this->*how)(p, alone); }};
  return {{"allThreadsContinued", !alone}};
}

MachineMoveEnd Adapter::run_on(std::size_t processor, bool alone) {
  if (together_) return together_->go_on(processor, alone, interrupt_);
  return {debuggee(processor).target().go_on(interrupt_), processor};
}

MachineMoveEnd Adapter::run_back(std::size_t processor, bool alone) {
  if (together_ && !alone) return together_->go_back(processor, interrupt_);
  return {debuggee(processor).target().go_back(interrupt_), processor};
}

/// Takes the other processors to where the bus shows them now.
void Adapter::follow(std::size_t processor) {
  if (together_) together_->follow(processor);
}

void Adapter::finish_move() {
  if (!pending_) return;
  const Pending pending = *std::exchange(pending_, std::nullopt);
  current_ = pending.processor;
  try {
    const MachineMoveEnd made = pending.move();
    current_ = made.processor;
    put_breakpoints();  // and none of the move's own
    tell_end(made.processor, pending.reason, made.end);
  } catch (const Error& error) {
    put_breakpoints();
    send_event("output", {{"category", "important"}, {"output", error.what() + std::string("\n")}});
    tell_stopped(pending.processor, pending.reason, "", {});
  }
  for (auto& [name, body] : later_) send_event(name, std::move(body));
  later_.clear();
}

void Adapter::tell_end(std::size_t processor, const char* reason, const MoveEnd& end) {
  const LinearAddr pc = debuggee(processor).pc();
  switch (end.why) {
    case MoveEnd::Why::moved:
      return tell_stopped(processor, reason, "", {});
    case MoveEnd::Why::breakpoint:
    case MoveEnd::Why::watchpoint:
      return tell_stopped(processor, breakpoints_.reason(end, pc), "", breakpoints_.met(end, pc));
    case MoveEnd::Why::end: {
      const std::string why = debuggee(processor).monitor().divergence_text();
      return tell_stopped(processor, "end", why.empty() ? "The recorded run ends here" : why, {});
    }
    case MoveEnd::Why::beginning:
      return tell_stopped(processor, "beginning", "The recorded run begins here", {});
    case MoveEnd::Why::interrupted:
      return tell_stopped(processor, "pause", "", {});
  }
}

void Adapter::tell_stopped(std::size_t processor, const std::string& reason,
                           const std::string& description, const std::vector<int>& met) {
  Json body{{"reason", reason}, {"threadId", processor + 1}, {"allThreadsStopped", true}};
  if (!description.empty()) body["description"] = body["text"] = description;
  if (!met.empty()) body["hitBreakpointIds"] = met;
  later_.emplace_back("stopped", std::move(body));
}

Json Adapter::go_on(const Arguments& arguments) { return move_all(arguments, &Adapter::run_on); }

Json Adapter::reverse_continue(const Arguments& arguments) {
  move_all(arguments, &Adapter::run_back);
  return {};
}

Json Adapter::next(const Arguments& arguments) {
  const Unit unit = unit_of(arguments);
  return move(arguments, "step",
              [this, unit](Debuggee& d) { return Stepper(d, interrupt_).over(unit); });
}

Json Adapter::step_in(const Arguments& arguments) {
  const Unit unit = unit_of(arguments);
  return move(arguments, "step",
              [this, unit](Debuggee& d) { return Stepper(d, interrupt_).into(unit); });
}

Json Adapter::step_out(const Arguments& arguments) {
  return move(arguments, "step", [this](Debuggee& d) { return Stepper(d, interrupt_).out(); });
}

Json Adapter::step_back(const Arguments& arguments) {
  const Unit unit = unit_of(arguments);
  return move(arguments, "step",
              [this, unit](Debuggee& d) { return Stepper(d, interrupt_).back(unit); });
}

/// To where the procedure was called, or the interrupt came.
Json Adapter::restart_frame(const Arguments& arguments) {
  constexpr std::size_t kLevelBits = 12;
  const std::int64_t number = arguments.integer("frameId", 0, 1, std::int64_t{1} << 40) - 1;
  const auto p = static_cast<std::size_t>(number) >> kLevelBits;
  const auto level = static_cast<std::size_t>(number) & ((1u << kLevelBits) - 1);
  const std::vector<StackLevel>& levels = debuggee(p).stack_levels(interrupt_);
  if (level >= levels.size() || !levels[level].called) {
    throw UsageError("frameId: it is not known where this frame was called");
  }
  const Position at = *levels[level].called;
  pending_ = Pending{p, "restart", [this, p, at] {
                       debuggee(p).target().timeline().seek(at, interrupt_);
                       follow(p);
                       return MachineMoveEnd{{}, p};
                     }};
  return {};
}

/// Nothing runs any more when this is asked: a run is interrupted by Line::is_interrupted().
Json Adapter::pause(const Arguments& arguments) {
  processor_of(arguments);
  return {};
}

Json Adapter::seek(const Arguments& arguments) {
  const std::size_t p = processor_of(arguments);
  debuggee(p);
  go_to(p, arguments.required_text("at"));
  follow(p);
  current_ = p;
  tell_stopped(p, "goto", "", {});
  return {};
}

}  // namespace citcat::dap
