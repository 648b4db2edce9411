#include "sql/database/virtual_table.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/error.h"
#include "sql/database/processors_cursor.h"

namespace citcat::sql {

/// SQLite knows it by its first member.
struct VirtualTable {
  sqlite3_vtab base{};
  const Table* table = nullptr;
  TableHost* host = nullptr;
  ColumnSet used = 0;  ///< by the statement
  RowNumbers numbers;
};

namespace {

struct VirtualCursor {
  sqlite3_vtab_cursor base{};
  std::unique_ptr<ProcessorsCursor> cursor;
  bool ended = true;
};

struct Registration {
  const Table* table;
  TableHost* host;
};

VirtualTable& of(sqlite3_vtab* table) { return *reinterpret_cast<VirtualTable*>(table); }
VirtualCursor& of(sqlite3_vtab_cursor* cursor) { return *reinterpret_cast<VirtualCursor*>(cursor); }

/// Calls act(); keeps what it throws for whoever runs the statement.
template <class F>
int guarded(sqlite3_vtab* table, F&& act) {
  VirtualTable& mine = of(table);
  try {
    act(mine);
    return SQLITE_OK;
  } catch (const std::exception& e) {
    mine.host->failure = std::current_exception();
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", e.what());
    return SQLITE_ERROR;
  }
}

int connect(sqlite3* database, void* registration, int /*argc*/, const char* const* /*argv*/,
            sqlite3_vtab** out, char** /*error*/) {
  const auto& known = *static_cast<const Registration*>(registration);
  const int declared = sqlite3_declare_vtab(database, schema_of(*known.table, false).c_str());
  if (declared != SQLITE_OK) return declared;
  auto made = std::make_unique<VirtualTable>();
  made->table = known.table;
  made->host = known.host;
  known.host->tables.push_back(made.get());
  *out = &made.release()->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  std::erase(of(table).host->tables, &of(table));
  delete &of(table);
  return SQLITE_OK;
}

std::optional<Constraint::Is> comparison_of(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return Constraint::Is::equal;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Constraint::Is::greater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Constraint::Is::at_least;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Constraint::Is::less;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Constraint::Is::at_most;
    default:
      return std::nullopt;
  }
}

/// What the constraints that are taken leave of the rows, in the planner's eyes.
struct Estimate {
  ColumnSet equal = 0, bounded = 0;

  void take(const Constraint& c) {
    (c.is == Constraint::Is::equal ? equal : bounded) |= ColumnSet{1} << c.column;
  }
  double rows(const Table& table, const std::vector<RowSource*>& sources) const {
    constexpr double kAlike = 8, kBounded = 4, kWithout = 1e15;
    // Any plan is better that gives the table what it has to know.
    if ((table.required() & ~equal) != 0) return kWithout;
    double rows = 0;
    for (const RowSource* source : sources) rows += table.rows(*source);
    const int ordered = table.ordered_by();
    if (ordered >= 0 && has_column(equal, ordered))
      return 2.0 * static_cast<double>(sources.size());
    for (int c = 0; c <= static_cast<int>(table.columns().size()); ++c) {
      if (has_column(equal, c)) rows /= kAlike;
      if (has_column(bounded, c)) rows /= kBounded;
    }
    return rows < 1 ? 1 : rows;
  }
};

/// The index string of a plan: column and comparison of each constraint, two bytes that are no
/// zero.
int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  VirtualTable& mine = of(table);
  const auto columns = mine.table->columns();
  const bool counts = mine.host->counting != nullptr && mine.host->counting->table == mine.table;
  // The processor is no matter of the table's own.
  mine.used |= info->colUsed & ((ColumnSet{1} << columns.size()) - 1);
  for (RowSource* source : mine.host->sources) {
    if (!counts) source->need(mine.table->needs(mine.used));
  }
  std::string plan;
  Estimate estimate;
  std::map<int, int> left_out;
  int arguments = 0;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& given = info->aConstraint[i];
    const auto is = comparison_of(given.op);
    if (!is || given.iColumn < 0) continue;
    const bool is_processor = given.iColumn == mine.table->processor_column();
    const Column::Use use =
        is_processor ? Column::Use::exact : columns[static_cast<std::size_t>(given.iColumn)].use;
    if (use == Column::Use::none) continue;
    const bool is_required = has_column(mine.table->required(), given.iColumn);
    // Another plan, in which it is known by then.
    if (is_required && is == Constraint::Is::equal && given.usable == 0) return SQLITE_CONSTRAINT;
    if (given.usable == 0) continue;
    const bool is_single = counts && has_column(mine.table->single_columns(), given.iColumn);
    // A side of an OR would be given counts of what it leaves, which the other side counts again.
    if (counts && !is_single && mine.host->counting->has_or) continue;
    // SQLite compares with the column's own collation only where the query names no other one.
    const bool is_text = !is_processor && columns[static_cast<std::size_t>(given.iColumn)].type ==
                                              Column::Type::text;
    if (is_text && std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
    info->aConstraintUsage[i].argvIndex = ++arguments;
    info->aConstraintUsage[i].omit = is_single || use == Column::Use::argument ? 1 : 0;
    if (is_single) ++left_out[given.iColumn];
    plan += static_cast<char>(given.iColumn + 1);
    plan += static_cast<char>(static_cast<int>(*is) + 1);
    estimate.take({*is, given.iColumn, {}});
  }
  if (counts && left_out != mine.host->counting->constraints) return SQLITE_CONSTRAINT;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  if (info->idxStr == nullptr) return SQLITE_NOMEM;
  const double rows = estimate.rows(*mine.table, mine.host->sources);
  info->estimatedRows = static_cast<sqlite3_int64>(rows);
  info->estimatedCost = rows;
  const int ordered = mine.table->ordered_by();
  info->orderByConsumed = !counts && mine.host->sources.size() == 1 && info->nOrderBy == 1 &&
                          ordered >= 0 && info->aOrderBy[0].iColumn == ordered &&
                          info->aOrderBy[0].desc == 0;
  return SQLITE_OK;
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  return guarded(table, [&](VirtualTable& mine) {
    auto made = std::make_unique<VirtualCursor>();
    const bool counts = mine.host->counting != nullptr && mine.host->counting->table == mine.table;
    made->cursor =
        std::make_unique<ProcessorsCursor>(*mine.table, mine.host->sources, counts, mine.used);
    *out = &made.release()->base;
  });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete &of(cursor);
  return SQLITE_OK;
}

Cell cell_of(sqlite3_value* value, Column::Type type) {
  Cell cell;
  // As SQLite compares it with the column.
  const int kind =
      type == Column::Type::text ? sqlite3_value_type(value) : sqlite3_value_numeric_type(value);
  switch (kind) {
    case SQLITE_INTEGER:
      return Cell::of(static_cast<std::uint64_t>(sqlite3_value_int64(value)));
    case SQLITE_FLOAT:
      cell.kind = Cell::Kind::real;
      cell.real = sqlite3_value_double(value);
      return cell;
    case SQLITE_NULL:
      return cell;
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
      const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
      return Cell::passing({text != nullptr ? text : "", text != nullptr ? size : 0});
    }
  }
}

void advance(VirtualCursor& cursor) { cursor.ended = !cursor.cursor->next(); }

int filter(sqlite3_vtab_cursor* cursor, int /*number*/, const char* plan, int count,
           sqlite3_value** values) {
  return guarded(cursor->pVtab, [&](const VirtualTable& mine) {
    const auto columns = mine.table->columns();
    Constraints constraints;
    for (int i = 0; i < count; ++i) {
      Constraint& c = constraints.emplace_back();
      c.column = plan[2 * i] - 1;
      c.is = static_cast<Constraint::Is>(plan[2 * i + 1] - 1);
      const bool is_processor = c.column == mine.table->processor_column();
      c.value = cell_of(values[i], is_processor ? Column::Type::integer
                                                : columns[static_cast<std::size_t>(c.column)].type);
    }
    VirtualCursor& it = of(cursor);
    it.cursor->filter(constraints);
    advance(it);
  });
}

int next_row(sqlite3_vtab_cursor* cursor) {
  return guarded(cursor->pVtab, [&](const VirtualTable&) { advance(of(cursor)); });
}

int at_end(sqlite3_vtab_cursor* cursor) { return of(cursor).ended ? 1 : 0; }

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  return guarded(cursor->pVtab, [&](VirtualTable& mine) {
    const ProcessorsCursor& it = *of(cursor).cursor;
    *id = mine.numbers.number(it.source(), it.key());
  });
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int number) {
  return guarded(cursor->pVtab, [&](const VirtualTable&) {
    const Cell cell = of(cursor).cursor->cell(number);
    switch (cell.kind) {
      case Cell::Kind::null:
        return sqlite3_result_null(context);
      case Cell::Kind::integer:
        return sqlite3_result_int64(context, cell.number);
      case Cell::Kind::real:
        return sqlite3_result_double(context, cell.real);
      case Cell::Kind::text:
      case Cell::Kind::passing_text:
        return sqlite3_result_text64(context, cell.text.data(), cell.text.size(), SQLITE_TRANSIENT,
                                     SQLITE_UTF8);
    }
  });
}

constexpr sqlite3_module make_module() {
  sqlite3_module module{};
  module.iVersion = 1;
  module.xCreate = connect;
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next_row;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

constexpr sqlite3_module kModule = make_module();

}  // namespace

void TableHost::begin_statement(const CountQuery* count_query) {
  counting = count_query;
  failure = nullptr;
  for (RowSource* each : sources) each->begin_statement();
  for (VirtualTable* table : tables) {
    table->used = 0;
    table->numbers.clear();
  }
}

void register_tables(sqlite3* database, TableHost& host) {
  for (const Table* table : table_list()) {
    const int made = sqlite3_create_module_v2(
        database, table->name(), &kModule, new Registration{table, &host},
        [](void* registration) { delete static_cast<Registration*>(registration); });
    const std::string create =
        std::string("CREATE VIRTUAL TABLE ") + table->name() + " USING " + table->name();
    if (made != SQLITE_OK ||
        sqlite3_exec(database, create.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw InternalError(std::string("table ") + table->name() + ": " + sqlite3_errmsg(database));
    }
  }
}

}  // namespace citcat::sql
