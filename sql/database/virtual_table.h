#pragma once
// One of citcat's tables as a virtual table of SQLite (https://www.sqlite.org/vtab.html).

#include <sqlite3.h>

#include <exception>
#include <functional>
#include <vector>

#include "sql/database/count_query.h"
#include "sql/database/row_numbers.h"
#include "sql/rows/row_source.h"
#include "sql/tables/table.h"

namespace citcat::sql {

struct VirtualTable;

/// What the virtual tables of a connection have in common.
struct TableHost {
  /// One for each processor, at least one.
  std::vector<RowSource*> sources;
  std::vector<VirtualTable*> tables;
  const CountQuery* counting = nullptr;  ///< the statement that is made ready is for counts
  std::exception_ptr failure;            ///< thrown by a table

  /// Another statement is made ready.
  void begin_statement(const CountQuery* count_query);
};

/// Registers the tables of table_list(), whose names the database then knows. Throws InternalError.
void register_tables(sqlite3* database, TableHost& host);

}  // namespace citcat::sql
