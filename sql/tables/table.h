#pragma once
// A table that a query sees: its columns, and cursors that go through its rows.
//
// A table is a file with a Table and nothing else that is visible, named in table_list.cc.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sql/rows/row_source.h"
#include "sql/tables/cell.h"
#include "sql/tables/constraint.h"

namespace citcat::sql {

struct Column {
  enum class Type : std::uint8_t { integer, address, text } type = Type::integer;
  /// How a table makes use of a constraint on the column.
  enum class Use : std::uint8_t {
    none,
    exact,     ///< Cursor::filter() leaves just the rows that satisfy it
    argument,  ///< hidden; it says which rows there are, and what it equals comes first
  } use = Use::none;
  const char* name = "";
  const char* meaning = "";
};

/// A set of columns, by number.
using ColumnSet = std::uint64_t;
constexpr bool has_column(ColumnSet set, int column) { return (set >> column & 1) != 0; }

/// Which row of its table one is: the same numbers however the row was reached, so that SQLite
/// recognises a row that comes again.
using RowKey = std::array<std::uint64_t, 4>;

/// Goes through rows.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// To before the first row. At least the rows that satisfy the constraints come; of columns of
  /// Use::exact, no others.
  virtual void filter(const Constraints& constraints) = 0;
  /// To the next row; false after the last one.
  virtual bool next() = 0;
  /// The value of a column in the current row.
  virtual Cell cell(int column) = 0;
  /// Which row the current one is. Throws InternalError where it stands for several.
  virtual RowKey key() const = 0;
};

class Table {
 public:
  constexpr Table(const char* name, const char* meaning, std::span<const Column> columns)
      : name_(name), meaning_(meaning), columns_(columns) {}
  virtual ~Table() = default;

  const char* name() const { return name_; }
  const char* meaning() const { return meaning_; }
  std::span<const Column> columns() const { return columns_; }

  /// Its rows are of a processor's run: they come with its number, in a column after the others.
  virtual bool of_run() const { return true; }
  /// Number of that column; -1: there is none.
  int processor_column() const { return of_run() ? static_cast<int>(columns_.size()) : -1; }
  /// What the rows need of a replay where these columns are used.
  virtual RowNeeds needs(ColumnSet /*used*/) const { return {}; }
  /// Rows come in the order of this column, and a constraint on it leads there at once; -1: none.
  virtual int ordered_by() const { return -1; }
  /// Columns that a query has to say the values of (`=`), before there are rows.
  virtual ColumnSet required() const { return 0; }
  /// Some rows, more or less; the planner of SQLite puts the shorter table outside.
  virtual double rows(const RowSource& source) const = 0;
  virtual std::unique_ptr<Cursor> open(RowSource& source) const = 0;

  /// Rows that are alike in these columns may come as one, with their number in the column
  /// counts_column(): where a query only counts them. Columns in which rows are never alike, and
  /// which a query that counts may therefore only constrain:
  virtual ColumnSet single_columns() const { return 0; }
  /// The hidden column; -1: rows are not counted.
  virtual int counts_column() const { return -1; }
  virtual std::unique_ptr<Cursor> open_counts(RowSource& /*source*/, ColumnSet /*used*/) const {
    return nullptr;
  }

 private:
  const char* name_;
  const char* meaning_;
  std::span<const Column> columns_;
};

/// All tables, in the order of the documentation.
std::span<const Table* const> table_list();

/// Its declaration, as `.schema` prints it: with the meanings of the columns where `commented`.
std::string schema_of(const Table& table, bool commented);

}  // namespace citcat::sql
