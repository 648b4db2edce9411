#include "sql/database/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <iterator>
#include <optional>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/memory_limit.h"
#include "sql/database/count_query.h"
#include "sql/database/virtual_table.h"

namespace citcat::sql {

namespace {

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

/// Instructions of SQLite's machine between two looks at who wants to end it.
constexpr int kPollEvery = 100'000;

/// Only what reads is allowed; a recording is never changed.
int authorize(void*, int action, const char*, const char* function, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return std::string_view(function) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

/// `digits` keeps those of a blob.
Cell value_of(sqlite3_stmt* statement, int column, std::string& digits) {
  Cell cell;
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return Cell::of(static_cast<std::uint64_t>(sqlite3_column_int64(statement, column)));
    case SQLITE_FLOAT:
      cell.kind = Cell::Kind::real;
      cell.real = sqlite3_column_double(statement, column);
      return cell;
    case SQLITE_NULL:
      return cell;
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      digits.clear();
      for (std::size_t i = 0; i < size; ++i) {
        fmt::format_to(std::back_inserter(digits), "{:02x}", bytes[i]);
      }
      return Cell::passing(digits);
    }
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return Cell::passing({text != nullptr ? text : "", text != nullptr ? size : 0});
    }
  }
}

std::vector<ResultColumn> columns_of(sqlite3_stmt* statement) {
  std::vector<ResultColumn> columns;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    ResultColumn& column = columns.emplace_back();
    if (const char* name = sqlite3_column_name(statement, i)) column.name = name;
    const char* const type = sqlite3_column_decltype(statement, i);
    column.is_address = type != nullptr && std::string_view(type).starts_with("ADDRESS");
  }
  return columns;
}

}  // namespace

struct Database::Parts {
  Parts(std::vector<RowSource*> sources, std::function<void()> poll_)
      : host{std::move(sources), {}, nullptr, nullptr}, poll(std::move(poll_)) {}

  static int ask(void* parts) {
    Parts& mine = *static_cast<Parts*>(parts);
    try {
      if (mine.poll) mine.poll();
      return 0;
    } catch (...) {
      mine.host.failure = std::current_exception();
      return 1;
    }
  }

  /// Why SQLite says no. `text`: all that is run, `begin`: where the statement begins.
  [[noreturn]] void fail(int code, std::size_t begin) {
    if (host.failure) std::rethrow_exception(std::exchange(host.failure, nullptr));
    if (code == SQLITE_NOMEM) refuse_memory("the query", "one of its rows");
    if (code == SQLITE_AUTH)
      throw UsageError("query: expected select; a recording is never changed");
    const int offset = sqlite3_error_offset(database);
    const std::string place =
        offset >= 0 ? ":" + std::to_string(begin + static_cast<std::size_t>(offset)) : "";
    const std::string why = sqlite3_errmsg(database);
    const bool asks_for_names = why.starts_with("no such table") || why.starts_with("no such col");
    throw UsageError("query" + place + ": " + why +
                     (asks_for_names ? " (`citcat sql --schema` prints the tables)" : ""));
  }

  Statement prepare(const std::string& text, std::size_t begin, const CountQuery* counting,
                    std::size_t& end) {
    host.begin_statement(counting);
    sqlite3_stmt* made = nullptr;
    const char* tail = nullptr;
    const int code = sqlite3_prepare_v2(database, text.c_str() + begin,
                                        static_cast<int>(text.size() - begin), &made, &tail);
    Statement statement(made);
    if (code != SQLITE_OK) {
      if (counting != nullptr) return nullptr;
      fail(code, begin);
    }
    end = static_cast<std::size_t>(tail - text.c_str());
    return statement;
  }

  void step_through(sqlite3_stmt* statement, std::span<const ResultColumn> columns,
                    std::size_t begin, ResultSink& sink) {
    sink.begin(columns);
    std::vector<Cell> cells(columns.size());
    std::vector<std::string> digits(columns.size());
    int code = SQLITE_OK;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        cells[i] = value_of(statement, static_cast<int>(i), digits[i]);
      }
      sink.row(cells);
    }
    if (code != SQLITE_DONE) fail(code, begin);
    sink.end();
  }

  TableHost host;
  std::function<void()> poll;
  sqlite3* database = nullptr;
};

Database::Database(std::vector<RowSource*> sources, std::function<void()> poll)
    : parts_(std::make_unique<Parts>(std::move(sources), std::move(poll))) {
  const int opened = sqlite3_open_v2(":memory:", &parts_->database,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (opened != SQLITE_OK) throw InternalError("SQLite does not open a database in memory");
  sqlite3_hard_heap_limit64(static_cast<sqlite3_int64>(memory_limit()));
  register_tables(parts_->database, parts_->host);
  sqlite3_db_config(parts_->database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(parts_->database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(parts_->database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(parts_->database, authorize, nullptr);
  sqlite3_progress_handler(parts_->database, kPollEvery, Parts::ask, parts_.get());
}

Database::~Database() { sqlite3_close_v2(parts_->database); }

void Database::run(const std::string& text, ResultSink& sink) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin;
    Statement statement = parts_->prepare(text, begin, nullptr, end);
    if (statement == nullptr) {  // a comment, or nothing
      begin = end;
      continue;
    }
    const std::vector<ResultColumn> columns = columns_of(statement.get());
    // In place of rows that are only counted, their counts.
    std::optional<CountQuery> counting =
        as_count_query(std::string_view(text).substr(begin, end - begin));
    if (counting) {
      statement.reset();
      std::size_t ignored = 0;
      statement = parts_->prepare(counting->text, 0, &*counting, ignored);
      if (statement == nullptr) statement = parts_->prepare(text, begin, nullptr, ignored);
    }
    parts_->step_through(statement.get(), columns, begin, sink);
    begin = end;
  }
}

bool Database::is_complete(const std::string& text) { return sqlite3_complete(text.c_str()) != 0; }

}  // namespace citcat::sql
