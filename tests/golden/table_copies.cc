#include "golden/table_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sql/tables/table.h"

namespace citcat::testing {

namespace {

using CopyJson = nlohmann::ordered_json;

/// Rows that are printed whole, and compared with each other in joins.
constexpr std::uint64_t kFewRows = 3000;

/// Quoted only where it has to be: queries with quotes are not answered by counts.
std::string quoted_name(const std::string& name) { return name == "end" ? "\"end\"" : name; }

std::string separated(const std::vector<std::string>& all, const char* by) {
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : by) + each;
  return text;
}

/// As a literal of SQL.
std::string literal_of(const CopyJson& value) {
  if (value.is_null()) return "NULL";
  if (!value.is_string()) return value.dump();
  std::string text = "'";
  for (const char c : value.get<std::string>()) text += c == '\'' ? "''" : std::string(1, c);
  return text + "'";
}

/// Rows as lines in an order of their own.
std::vector<std::string> sorted_lines(const CopyJson& rows) {
  std::vector<std::string> lines;
  for (const CopyJson& row : rows) {
    std::vector<std::string> values;
    for (const auto& [name, value] : row.items()) values.push_back(literal_of(value));
    lines.push_back(separated(values, ", "));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TableCopies::TableCopies(Ask ask, std::vector<CopiedTable> tables) : ask_(std::move(ask)) {
  sqlite3* made = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &made), SQLITE_OK);
  database_.reset(made);
  for (const CopiedTable& each : tables) copy(each);
}

std::vector<std::vector<std::string>> TableCopies::select(const std::string& query) const {
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << query << ": " << sqlite3_errmsg(database_.get());
  std::vector<std::vector<std::string>> rows;
  int code = SQLITE_DONE;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    std::vector<std::string>& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      const bool is_text = sqlite3_column_type(statement, i) == SQLITE_TEXT;
      row.push_back(is_text ? literal_of(text) : text != nullptr ? text : "NULL");
    }
  }
  EXPECT_EQ(code, SQLITE_DONE) << query << ": " << sqlite3_errmsg(database_.get());
  sqlite3_finalize(statement);
  return rows;
}

void TableCopies::copy(const CopiedTable& table) {
  Kept kept{table, {}, {}, 0};
  std::string declared;
  for (const sql::Table* each : sql::table_list()) {
    if (each->name() != table.name) continue;
    for (const sql::Column& column : each->columns()) {
      if (std::string(column.name) == "rows") continue;
      kept.columns.push_back(column.name);
      declared += quoted_name(column.name) +
                  (column.type == sql::Column::Type::text ? " TEXT, " : " INTEGER, ");
    }
    if (each->of_run()) kept.columns.push_back("processor");
    declared += each->of_run() ? "processor INTEGER" : "of_none INTEGER";
  }
  std::vector<std::string> names, parts;
  for (const std::string& column : kept.columns) names.push_back(quoted_name(column));
  const std::string all = "select " + separated(names, ", ") + " from " + table.name;
  for (const std::string& condition : table.conditions)
    parts.push_back(all + " where " + condition);
  if (parts.empty()) parts.push_back(all);
  select("create table " + table.name + "(" + declared + ")");
  for (const std::string& part : parts) {
    std::vector<std::string> values;
    const auto insert = [&] {
      if (!values.empty())
        select("insert into " + table.name + "(" + separated(names, ", ") + ") values " +
               separated(values, ", "));
      values.clear();
    };
    for (const CopyJson& row : CopyJson::parse(ask_(part))) {
      std::vector<std::string> cells;
      for (const auto& [name, value] : row.items()) cells.push_back(literal_of(value));
      values.push_back("(" + separated(cells, ", ") + ")");
      ++kept.rows;
      if (values.size() == 400) insert();
    }
    insert();
  }
  for (const std::string& name : names) {
    std::vector<std::string>& some = kept.values.emplace_back();
    for (const auto& row : select("select distinct " + name + " from " + table.name + " order by " +
                                  name + " * 2654435761 % 997 limit 60"))
      some.push_back(row[0]);
    some.insert(some.end(), {"0", "-1", "3", "NULL", "2.5", "'x'", "9223372036854775807"});
  }
  tables_.push_back(std::move(kept));
}

std::uint64_t TableCopies::rows(const std::string& table) const {
  for (const Kept& kept : tables_) {
    if (kept.table.name == table) return kept.rows;
  }
  return 0;
}

void TableCopies::compare(const std::vector<std::string>& queries) const {
  constexpr std::size_t kAtOnce = 40;
  for (std::size_t i = 0; i < queries.size(); i += kAtOnce) {
    const std::vector<std::string> some(
        queries.begin() + static_cast<std::ptrdiff_t>(i),
        queries.begin() + static_cast<std::ptrdiff_t>(std::min(queries.size(), i + kAtOnce)));
    std::istringstream lines(ask_(separated(some, ";\n")));
    for (const std::string& query : some) {
      std::string line;
      ASSERT_TRUE(std::getline(lines, line)) << query;
      std::vector<std::string> expected;
      for (const auto& row : select(query)) expected.push_back(separated(row, ", "));
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(sorted_lines(CopyJson::parse(line)), expected) << query;
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Queries

std::string TableCopies::literal(const Kept& table, std::size_t column) {
  return one_of(table.values[column]);
}

std::string TableCopies::comparison(const Kept& table, const std::string& prefix) {
  // The first columns are those that narrow.
  const std::size_t column = below(2) == 0 ? 0 : below(table.columns.size());
  const std::string name = prefix + quoted_name(table.columns[column]);
  const auto value = [&] { return literal(table, column); };
  switch (below(9)) {
    case 0:
      return name + " between " + value() + " and " + value();
    case 1:
      return name + " in (" + value() + ", " + value() + ", " + value() + ")";
    case 2:
      return name + " is " + value();
    case 3:
      return value() + " < " + name;
    case 4:
      return name + " = " + value() + " collate nocase";
    default:
      return name + one_of({" = ", " < ", " <= ", " > ", " >= ", " <> "}) + value();
  }
}

std::string TableCopies::tree(const Kept& table, const std::string& prefix, unsigned depth) {
  if (depth == 0 || below(5) == 0) return comparison(table, prefix);
  const auto side = [&] { return tree(table, prefix, depth - 1); };
  switch (below(6)) {
    case 0:
      return "(" + side() + " and " + side() + ")";
    case 1:
      return "(" + side() + " or " + side() + " or " + side() + ")";
    case 2:
      return "not (" + side() + ")";
    default:
      return "(" + side() + " or " + side() + ")";
  }
}

std::string TableCopies::condition(const Kept& table) {
  if (table.table.conditions.empty()) return tree(table, "", 3);
  std::vector<std::string> sides;
  for (std::uint64_t n = 2 + below(2); n != 0; --n) {
    sides.push_back("(" + one_of(table.table.conditions) + " and " + tree(table, "", 2) + ")");
  }
  return separated(sides, " or ");
}

std::string TableCopies::query(const Kept& table) {
  const std::string from = " from " + table.table.name + " where " + condition(table);
  const std::string first = quoted_name(table.columns[0]);
  const std::string grouped = quoted_name(one_of(table.columns));
  switch (below(5)) {
    case 0:
      return "select count(*) n" + from;
    case 1:
      return "select " + grouped + ", count(*) n" + from + " group by 1";
    case 2:
      return "select count(" + first + ") n, sum(length(" + grouped + ")) s" + from;
    case 3:
      return "select " + first + from + " order by 1 limit 20";
    default: {
      std::vector<std::string> names;
      for (const std::string& column : table.columns) names.push_back(quoted_name(column));
      if (table.rows <= kFewRows) return "select " + separated(names, ", ") + from;
      return "select sum(" + first + " & 1023) s, min(" + grouped + ") m" + from;
    }
  }
}

std::string TableCopies::join(const Kept& a, const Kept& b) {
  const std::string kind = one_of({" join ", " left join ", " right join ", " full join "});
  std::string on = below(2) == 0 ? "a.position = b.position"
                                 : "(a.position = b.position or a.position = b.position + 1)";
  if (below(2) == 0) on += " and " + tree(b, "b.", 1);
  std::string query = "select a.position p, b.position q, a.processor r, b.processor s from " +
                      a.table.name + " a" + kind + b.table.name + " b on " + on;
  if (below(2) == 0) query += " where " + tree(a, "a.", 2);
  return query;
}

void TableCopies::expect_same(unsigned queries, unsigned seed) {
  random_.seed(seed);
  for (const Kept& table : tables_) {
    std::vector<std::string> all;
    for (unsigned i = 0; i < queries; ++i) all.push_back(query(table));
    compare(all);
  }
}

void TableCopies::expect_same_joins(unsigned queries, unsigned seed) {
  random_.seed(seed);
  std::vector<const Kept*> joined;
  for (const Kept& table : tables_) {
    if (table.table.conditions.empty() && table.columns[0] == "position" && table.rows <= kFewRows)
      joined.push_back(&table);
  }
  ASSERT_FALSE(joined.empty());
  std::vector<std::string> all;
  for (unsigned i = 0; i < queries; ++i) {
    all.push_back(join(*joined[below(joined.size())], *joined[below(joined.size())]));
  }
  compare(all);
}

}  // namespace citcat::testing
