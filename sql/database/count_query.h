#pragma once
// Queries that only count rows of one table: these are answered by counts in place of rows.
//
// `select mnemonic, count(*) from instructions group by 1` needs no row of each instruction. Its
// count(*) becomes the sum of the table's column of counts (Table::counts_column()), and the table
// gives one row for all rows that are alike in the columns that are used. Other queries are left as
// they are.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sql/tables/table.h"

namespace citcat::sql {

struct CountQuery {
  const Table* table = nullptr;
  std::string text;  ///< the query for counts
  /// How many constraints the words of the query make of each of the table's single columns:
  /// where fewer are told to the table, the column is used otherwise too.
  std::map<int, int> constraints;
  bool has_or = false;
};

/// `statement`: one statement, without a semicolon or with one. Nullopt for any other query.
std::optional<CountQuery> as_count_query(std::string_view statement);

}  // namespace citcat::sql
