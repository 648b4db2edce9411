// Tables of the recorded system: syscalls, processes, calls.

#include "sql/rows/row_pass.h"
#include "sql/tables/vector_cursor.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

// ---- syscalls ----------------------------------------------------------------------------------

enum SyscallColumn : int {
  kSyscallPosition,
  kSyscallProcess,
  kSyscallNumber,
  kSyscallName,
  kSyscallResult,
  kSyscallEnd,
  kSyscallState,
  kSyscallCall,
  kSyscallError,
  kSyscallInterface,
  kSyscallSpace,
  kSyscallArgument0,
  kSyscallArgument5 = kSyscallArgument0 + 5,
};

constexpr Column kSyscallColumns[] = {
    {integer, exact, "position", "instructions completed before the one that makes the call"},
    {text, none, "process", "name of the calling process, or its page tables (CR3)"},
    {integer, none, "number", "of the call"},
    {text, none, "name", "of the call"},
    {integer, none, "result", "its result, negative for an error; NULL if it did not return"},
    {integer, none, "end", "position of the return; NULL if the run ends before it"},
    {text, none, "state", "returned, restarted, never (it does not return) or pending"},
    {text, none, "call", "the call with its arguments, for people"},
    {integer, none, "error", "1: it failed"},
    {text, none, "interface", "i386 or amd64"},
    {Column::Type::address, none, "address_space", "CR3"},
    {integer, none, "argument0", "first argument"},
    {integer, none, "argument1", "second"},
    {integer, none, "argument2", "third"},
    {integer, none, "argument3", "fourth"},
    {integer, none, "argument4", "fifth"},
    {integer, none, "argument5", "sixth; NULL if it is not known"},
};

struct SyscallForm {
  using Row = SystemCallRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.system_calls; }
  static std::uint64_t position(const Row& row) { return row.call.begin.instruction; }
  static bool is_row(const Row&) { return true; }
  static const char* state_text(tools::SystemCall::End state) {
    switch (state) {
      case tools::SystemCall::End::pending:
        return "pending";
      case tools::SystemCall::End::returned:
        return "returned";
      case tools::SystemCall::End::restarted:
        return "restarted";
      case tools::SystemCall::End::never:
        return "never";
    }
    return "";
  }
  static Cell cell(int column, const Row& row, const RowSource&, const WholeRun&,
                   std::string& scratch) {
    using End = tools::SystemCall::End;
    const tools::SystemCall& call = row.call;
    switch (column) {
      case kSyscallPosition:
        return Cell::of(call.begin.instruction);
      case kSyscallProcess:
        return Cell::lasting(*row.process);
      case kSyscallNumber:
        return Cell::of(call.number);
      case kSyscallName:
        return Cell::passing(scratch = tools::system_call_name(call.number, call.of));
      case kSyscallResult:
        return call.state == End::returned
                   ? Cell::of(static_cast<std::uint64_t>(tools::signed_result(call)))
                   : Cell::null();
      case kSyscallEnd:
        return call.state == End::pending ? Cell::null() : Cell::of(call.end.instruction);
      case kSyscallState:
        return Cell::lasting(state_text(call.state));
      case kSyscallCall:
        return Cell::passing(scratch = tools::system_call_text(call));
      case kSyscallError:
        return Cell::of(tools::is_error(call) ? 1 : 0);
      case kSyscallInterface:
        return Cell::lasting(call.of == tools::SystemCallInterface::amd64 ? "amd64" : "i386");
      case kSyscallSpace:
        return Cell::of(call.address_space);
      default: {
        const auto number = static_cast<unsigned>(column - kSyscallArgument0);
        return column <= kSyscallArgument5 && number < call.known_arguments
                   ? Cell::of(call.arguments[number])
                   : Cell::null();
      }
    }
  }
};

// ---- processes ---------------------------------------------------------------------------------

enum ProcessColumn : int {
  kProcessPosition,
  kProcessName,
  kProcessSpace,
  kProcessLast,
  kProcessInstructions,
  kProcessUser,
  kProcessTurns,
};

constexpr Column kProcessColumns[] = {
    {integer, exact, "position", "position of the first instruction that ran in it"},
    {text, none, "process", "name of the process, or its page tables (CR3)"},
    {Column::Type::address, none, "address_space", "CR3; with isolated page tables, the kernel's"},
    {integer, none, "last", "position of the last instruction that ran in it"},
    {integer, none, "instructions", "instructions that ran in it"},
    {integer, none, "user_instructions", "of these at level 3"},
    {integer, none, "turns", "how often the processor switched to it"},
};

struct ProcessForm {
  using Row = ProcessRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.processes; }
  static std::uint64_t position(const Row& row) { return row.first; }
  static bool is_row(const Row& row) { return row.instructions != 0; }
  static Cell cell(int column, const Row& row, const RowSource&, const WholeRun&, std::string&) {
    switch (column) {
      case kProcessPosition:
        return Cell::of(row.first);
      case kProcessName:
        return Cell::lasting(*row.process);
      case kProcessSpace:
        return Cell::of(row.address_space);
      case kProcessLast:
        return Cell::of(row.last);
      case kProcessInstructions:
        return Cell::of(row.instructions);
      case kProcessUser:
        return Cell::of(row.of_level_3);
      case kProcessTurns:
        return Cell::of(row.switches);
      default:
        return Cell::null();
    }
  }
};

// ---- calls -------------------------------------------------------------------------------------

enum CallColumn : int {
  kCallPosition,
  kCallProcedure,
  kCallCaller,
  kCallModule,
  kCallDepth,
  kCallInstructions,
  kCallProcess,
  kCallLevel,
};

constexpr Column kCallColumns[] = {
    {integer, exact, "position", "where the procedure begins to run"},
    {text, none, "procedure", "its name, or its address if it has none"},
    {text, none, "caller", "the procedure that calls it"},
    {text, none, "module", "program, library or kernel of the procedure; empty if not known"},
    {integer, none, "depth", "calls that are open on the stack, including this one"},
    {integer, none, "instructions",
     "instructions that its thread executed up to its return; NULL if the run ends before it"},
    {text, none, "process", "name of the running process, or its page tables (CR3)"},
    {integer, none, "level", "privilege level, 0 to 3"},
};

struct CallForm {
  using Row = ProcedureCallRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.calls; }
  static std::uint64_t position(const Row& row) { return row.at; }
  static bool is_row(const Row& row) { return row.is_call; }
  static Cell cell(int column, const Row& row, const RowSource& source, const WholeRun& run,
                   std::string&) {
    const tools::ProcedureTable& procedures = *run.pass->procedures();
    switch (column) {
      case kCallPosition:
        return Cell::of(row.at);
      case kCallProcedure:
        return Cell::lasting(procedures.name(row.procedure));
      case kCallCaller:
        return Cell::lasting(procedures.name(row.caller));
      case kCallModule:
        return Cell::lasting(procedures.module(row.procedure));
      case kCallDepth:
        return Cell::of(row.depth);
      case kCallInstructions:
        return row.ended ? Cell::of(row.instructions) : Cell::null();
      case kCallProcess:
        return Cell::lasting(*source.contexts()[row.context].process);
      case kCallLevel:
        return level_cell(source.contexts()[row.context]);
      default:
        return Cell::null();
    }
  }
};

const VectorTable<SyscallForm> kSyscallsInstance(
    "syscalls", "System calls of Linux on i386 and amd64, in the order in which they began",
    kSyscallColumns, &RowNeeds::system_calls);
const VectorTable<ProcessForm> kProcessesInstance(
    "processes", "Processes: a row for each address space and each program that ran in it",
    kProcessColumns, &RowNeeds::processes);
const VectorTable<CallForm> kCallsInstance("calls", "Calls of procedures", kCallColumns,
                                           &RowNeeds::calls);

}  // namespace

const Table& kSyscallsTable = kSyscallsInstance;
const Table& kProcessesTable = kProcessesInstance;
const Table& kCallsTable = kCallsInstance;

}  // namespace citcat::sql
