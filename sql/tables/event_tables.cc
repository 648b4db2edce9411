// Tables of what happens besides instructions: events, system, ports, external_writes.

#include "sql/tables/vector_cursor.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

// ---- events ------------------------------------------------------------------------------------

enum EventColumn : int {
  kEventPosition,
  kEventKind,
  kEventVector,
  kEventIteration,
  kEventErrorCode,
  kEventCs,
  kEventOffset,
  kEventCr2,
  kEventProcess,
  kEventLevel,
};

constexpr Column kEventColumns[] = {
    {integer, exact, "position", "instructions completed before it"},
    {text, none, "kind",
     "exception, software interrupt, interrupt (from outside), nmi, smi, halt or shutdown"},
    {integer, none, "vector", "its vector; NULL if it has none"},
    {integer, none, "iteration", "completed iterations of the REP that it interrupts"},
    {integer, none, "error_code", "error code of an exception, else NULL"},
    {integer, none, "cs", "for a delivery: the code segment that it came from"},
    {Column::Type::address, none, "offset",
     "for a delivery: offset in CS of the instruction that faulted or would run next, or of INT"},
    {Column::Type::address, none, "cr2", "for a page fault: the address that was accessed"},
    {text, none, "process", "name of the running process, or its page tables (CR3)"},
    {integer, none, "level",
     "privilege level that it came from; NULL for a shutdown during a delivery"},
};

struct EventForm {
  using Row = EventRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.events; }
  static std::uint64_t position(const Row& row) { return row.at.instruction; }
  static bool is_row(const Row&) { return true; }
  static const char* kind_text(EventRow::Kind kind) {
    static constexpr const char* kNames[] = {
        "exception", "software interrupt", "interrupt", "nmi", "smi", "halt", "shutdown"};
    return kNames[static_cast<std::size_t>(kind)];
  }
  static Cell cell(int column, const Row& row, const RowSource& source, const WholeRun&,
                   std::string&) {
    constexpr std::uint8_t kPageFault = 14;  // Intel SDM vol. 3, table 6-1
    const ContextTable::Entry& context = source.contexts()[row.context];
    const bool is_exception = row.kind == EventRow::Kind::exception;
    switch (column) {
      case kEventPosition:
        return Cell::of(row.at.instruction);
      case kEventKind:
        return Cell::lasting(kind_text(row.kind));
      case kEventVector:
        return row.has_vector() ? Cell::of(row.vector) : Cell::null();
      case kEventIteration:
        return Cell::of(row.at.iteration);
      case kEventErrorCode:
        return is_exception ? Cell::of(row.error_code) : Cell::null();
      case kEventCs:
        return row.is_delivery() ? Cell::of(row.cs) : Cell::null();
      case kEventOffset:
        return row.is_delivery() ? Cell::of(row.offset) : Cell::null();
      case kEventCr2:
        return is_exception && row.vector == kPageFault ? Cell::of(row.cr2) : Cell::null();
      case kEventProcess:
        return Cell::lasting(*context.process);
      case kEventLevel:
        return level_cell(context);
      default:
        return Cell::null();
    }
  }
};

// ---- system ------------------------------------------------------------------------------------

enum SystemColumn : int {
  kSystemPosition,
  kSystemKind,
  kSystemValue,
  kSystemProcess,
  kSystemLevel,
};

constexpr Column kSystemColumns[] = {
    {integer, exact, "position", "instructions completed before it"},
    {text, none, "kind",
     "return from interrupt, SYSENTER, SYSEXIT, SYSCALL, SYSRET, load of CR3 or CR0, INVD, "
     "WBINVD, or translation dropped"},
    {integer, none, "value",
     "for a load of CR3: its new value; for a dropped translation: the page's linear address; "
     "else NULL"},
    {text, none, "process", "name of the process before it, or its page tables (CR3)"},
    {integer, none, "level", "privilege level before it"},
};

struct SystemForm {
  using Row = SystemRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.system; }
  static std::uint64_t position(const Row& row) { return row.at.instruction; }
  static bool is_row(const Row&) { return true; }
  static Cell cell(int column, const Row& row, const RowSource& source, const WholeRun&,
                   std::string&) {
    const ContextTable::Entry& context = source.contexts()[row.context];
    switch (column) {
      case kSystemPosition:
        return Cell::of(row.at.instruction);
      case kSystemKind:
        return Cell::lasting(row.kind);
      case kSystemValue:
        return row.has_value ? Cell::of(row.value) : Cell::null();
      case kSystemProcess:
        return Cell::lasting(*context.process);
      case kSystemLevel:
        return level_cell(context);
      default:
        return Cell::null();
    }
  }
};

// ---- ports -------------------------------------------------------------------------------------

enum PortColumn : int {
  kPortPosition,
  kPortPort,
  kPortSize,
  kPortDirection,
  kPortValue,
  kPortIteration,
  kPortProcess,
  kPortLevel,
};

constexpr Column kPortColumns[] = {
    {integer, exact, "position", "instructions completed before the one that accesses it"},
    {integer, none, "port", "its number"},
    {integer, none, "size", "bytes"},
    {text, none, "direction", "read or write"},
    {integer, none, "value", "the value read or written"},
    {integer, none, "iteration", "number of the iteration of a REP string instruction, from 0"},
    {text, none, "process", "name of the running process, or its page tables (CR3)"},
    {integer, none, "level", "privilege level, 0 to 3"},
};

struct PortForm {
  using Row = PortRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.ports; }
  static std::uint64_t position(const Row& row) { return row.at.instruction; }
  static bool is_row(const Row&) { return true; }
  static Cell cell(int column, const Row& row, const RowSource& source, const WholeRun&,
                   std::string&) {
    const ContextTable::Entry& context = source.contexts()[row.context];
    switch (column) {
      case kPortPosition:
        return Cell::of(row.at.instruction);
      case kPortPort:
        return Cell::of(row.port);
      case kPortSize:
        return Cell::of(row.size);
      case kPortDirection:
        return Cell::lasting(row.write ? "write" : "read");
      case kPortValue:
        return Cell::of(row.value);
      case kPortIteration:
        return Cell::of(row.at.iteration);
      case kPortProcess:
        return Cell::lasting(*context.process);
      case kPortLevel:
        return level_cell(context);
      default:
        return Cell::null();
    }
  }
};

// ---- external_writes ---------------------------------------------------------------------------

constexpr Column kExternalWriteColumns[] = {
    {integer, exact, "position", "instructions completed before it"},
    {Column::Type::address, none, "physical", "physical address"},
    {integer, none, "size", "bytes"},
};

struct ExternalWriteForm {
  using Row = ExternalWriteRow;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.external_writes; }
  static std::uint64_t position(const Row& row) { return row.at.instruction; }
  static bool is_row(const Row&) { return true; }
  static Cell cell(int column, const Row& row, const RowSource&, const WholeRun&, std::string&) {
    switch (column) {
      case 0:
        return Cell::of(row.at.instruction);
      case 1:
        return Cell::of(row.physical.value);
      case 2:
        return Cell::of(row.size);
      default:
        return Cell::null();
    }
  }
};

const VectorTable<EventForm> kEventsInstance("events",
                                             "Interrupts, exceptions, halts and the shutdown",
                                             kEventColumns, &RowNeeds::events);
const VectorTable<SystemForm> kSystemInstance(
    "system", "Returns from the kernel, fast system calls, loads of page tables, cache flushes",
    kSystemColumns, &RowNeeds::system);
const VectorTable<PortForm> kPortsInstance("ports", "Accesses to ports", kPortColumns,
                                           &RowNeeds::ports);
const VectorTable<ExternalWriteForm> kExternalWritesInstance(
    "external_writes",
    "Memory that other bus masters changed, at the position at which the run first sees the change",
    kExternalWriteColumns, &RowNeeds::external_writes);

}  // namespace

const Table& kEventsTable = kEventsInstance;
const Table& kSystemTable = kSystemInstance;
const Table& kPortsTable = kPortsInstance;
const Table& kExternalWritesTable = kExternalWritesInstance;

}  // namespace citcat::sql
