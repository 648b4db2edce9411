// All tables that queries see, and how they are declared.

#include <array>

#include "sql/tables/table.h"

namespace citcat::sql {

// Each is defined in a file of its name.
extern const Table& kInstructionsTable;
extern const Table& kRefsTable;
extern const Table& kEventsTable;
extern const Table& kSystemTable;
extern const Table& kPortsTable;
extern const Table& kExternalWritesTable;
extern const Table& kSyscallsTable;
extern const Table& kProcessesTable;
extern const Table& kCallsTable;
extern const Table& kBlocksTable;
extern const Table& kSharingTable;
extern const Table& kBusTable;
extern const Table& kSymbolsTable;
extern const Table& kRegistersTable;
extern const Table& kMemoryTable;

std::span<const Table* const> table_list() {
  static const std::array<const Table*, 15> tables{
      &kInstructionsTable,   &kRefsTable,     &kEventsTable,    &kSystemTable,    &kPortsTable,
      &kExternalWritesTable, &kSyscallsTable, &kProcessesTable, &kCallsTable,     &kBlocksTable,
      &kSharingTable,        &kBusTable,      &kSymbolsTable,   &kRegistersTable, &kMemoryTable};
  return tables;
}

std::string schema_of(const Table& table, bool commented) {
  std::string text = "CREATE TABLE " + std::string(table.name()) + "(";
  const auto columns = table.columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    const bool hidden =
        c.use == Column::Use::argument || static_cast<int>(i) == table.counts_column();
    if (commented) text += "\n  ";
    text += std::string("\"") + c.name + "\" ";
    text += c.type == Column::Type::text      ? "TEXT"
            : c.type == Column::Type::address ? "ADDRESS INTEGER"
                                              : "INTEGER";
    if (hidden) text += " HIDDEN";
    if (i + 1 != columns.size() || table.of_run()) text += ",";
    if (commented) text += std::string("  -- ") + c.meaning;
  }
  if (table.of_run()) {
    text += commented ? "\n  \"processor\" INTEGER  -- number of the processor that ran"
                      : "\"processor\" INTEGER";
  }
  return text + (commented ? "\n);" : ")");
}

}  // namespace citcat::sql
