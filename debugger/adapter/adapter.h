#pragma once
// One session of an editor with a recorded machine: the requests of the debug adapter protocol,
// answered until the editor disconnects (microsoft.github.io/debug-adapter-protocol/specification).
// docs/dap.md lists the requests and their answers.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "debugger/adapter/breakpoints.h"
#include "debugger/adapter/debuggee.h"
#include "debugger/adapter/stepper.h"
#include "debugger/dap/line.h"
#include "debugger/target/machine_target.h"

namespace citcat::dap {

/// The arguments of `launch` or `attach`.
struct LaunchWish {
  std::string recording;  ///< empty: that of the command line
  std::string at;         ///< as Monitor::seek() takes it; empty: that of the command line
  std::vector<std::string> symbols;  ///< files, as --symbols takes them
  bool unchecked = false;            ///< as --unchecked
};

/// A recorded machine that was opened: its processors, and what is known of its programs.
struct OpenedMachine {
  struct Processor {
    std::string name;
    std::unique_ptr<Debuggee> debuggee;
  };
  std::shared_ptr<void> holds;  ///< what the debuggees are on
  std::vector<Processor> processors;
  /// Where the bus that they share tells their order; otherwise each moves by itself.
  std::optional<BusTurns> turns;
  MachineTarget::ForeignWrites foreign;  ///< called only if `turns` has a value
  std::string at;
};

class Adapter {
 public:
  /// Opens what is asked for; throws what is wrong with it.
  using Open = std::function<OpenedMachine(const LaunchWish& wish)>;

  /// The line must outlive the object.
  Adapter(Line& line, Open open);
  ~Adapter();

  /// Returns when the client has gone or said that it goes.
  void serve();

 private:
  struct Handler {
    const char* command;
    Json (Adapter::*answer)(const Arguments& arguments);
  };
  static const std::vector<Handler>& handlers();

  void answer(const Request& request);
  void respond(const Request& request, Json body);
  void refuse(const Request& request, const std::string& why);
  void send_event(const char* name, Json body);

  // ---- the session
  Json initialize(const Arguments&);
  Json launch(const Arguments&);
  Json configuration_done(const Arguments&);
  Json disconnect(const Arguments&);
  Json restart(const Arguments&);
  Json threads(const Arguments&);
  // ---- what is there
  Json stack_trace(const Arguments&);
  Json scopes(const Arguments&);
  Json variables(const Arguments&);
  Json read_memory(const Arguments&);
  Json disassemble(const Arguments&);
  Json evaluate(const Arguments&);
  Json data_breakpoint_info(const Arguments&);
  // ---- breakpoints
  Json set_breakpoints(const Arguments&);
  Json set_function_breakpoints(const Arguments&);
  Json set_instruction_breakpoints(const Arguments&);
  Json set_data_breakpoints(const Arguments&);
  Json set_exception_breakpoints(const Arguments&);
  // ---- moves
  Json go_on(const Arguments&);
  Json reverse_continue(const Arguments&);
  Json next(const Arguments&);
  Json step_in(const Arguments&);
  Json step_out(const Arguments&);
  Json step_back(const Arguments&);
  Json restart_frame(const Arguments&);
  Json pause(const Arguments&);
  Json seek(const Arguments&);

  /// A move is made after the answer that it has begun was sent. One of a single processor takes
  /// the others along.
  using Move = std::function<MoveEnd(Debuggee&)>;
  Json move(const Arguments& arguments, const char* reason, Move move);
  Json move_all(const Arguments& arguments, MachineMoveEnd (Adapter::*move)(std::size_t, bool));
  MachineMoveEnd run_on(std::size_t processor, bool alone);
  MachineMoveEnd run_back(std::size_t processor, bool alone);
  void follow(std::size_t processor);
  void finish_move();
  void tell_stopped(std::size_t processor, const std::string& reason,
                    const std::string& description, const std::vector<int>& met);
  void tell_end(std::size_t processor, const char* reason, const MoveEnd& end);
  void go_to(std::size_t processor, const std::string& where);
  void go_to_begin();

  std::size_t processor_of(const Arguments& arguments) const;
  Debuggee& debuggee(std::size_t processor);
  Json source_json(LinearAddr at, Json frame) const;
  Json registers_json(std::size_t processor, std::size_t group);
  Json call_json(std::size_t processor, std::size_t level);
  void put_breakpoints();

  Line& line_;
  const Open open_;
  const DebugTarget::Interrupt interrupt_;
  OpenedMachine machine_;
  std::optional<MachineTarget> together_;  ///< where there is an order among the processors
  Breakpoints breakpoints_;
  bool ends_ = false, configured_ = false;
  std::int64_t first_line_ = 1;
  std::size_t current_ = 0;  ///< processor that moved last
  struct Pending {
    std::size_t processor = 0;
    const char* reason = "";
    std::function<MachineMoveEnd()> move;
  };
  std::optional<Pending> pending_;
  std::vector<std::pair<const char*, Json>> later_;  ///< events after the answer
};

}  // namespace citcat::dap
