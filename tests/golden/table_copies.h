#pragma once
// What `citcat sql` answers, held to SQLite itself over tables that it keeps: copies of all rows.

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace citcat::testing {

/// A table of `citcat sql`; where it only has rows for some conditions, with some of these.
struct CopiedTable {
  std::string name;
  std::vector<std::string> conditions{};
};

class TableCopies {
 public:
  /// Runs statements by the program; its output with --json, a line for each statement.
  using Ask = std::function<std::string(const std::string& statements)>;

  /// Asks for all rows of the tables, and stores them.
  TableCopies(Ask ask, std::vector<CopiedTable> tables);

  /// Expects the same rows from the program and from SQLite, in any order, for so many random
  /// queries of each table.
  void expect_same(unsigned queries, unsigned seed);
  /// The same for queries over two tables.
  void expect_same_joins(unsigned queries, unsigned seed);
  std::uint64_t rows(const std::string& table) const;

 private:
  struct Kept {
    CopiedTable table;
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> values;  ///< of each column, as literals
    std::uint64_t rows = 0;
  };
  struct Closer {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };

  void copy(const CopiedTable& table);
  std::vector<std::vector<std::string>> select(const std::string& query) const;
  void compare(const std::vector<std::string>& queries) const;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  const std::string& one_of(const std::vector<std::string>& all) { return all[below(all.size())]; }
  std::string literal(const Kept& table, std::size_t column);
  std::string comparison(const Kept& table, const std::string& prefix);
  std::string tree(const Kept& table, const std::string& prefix, unsigned depth);
  std::string condition(const Kept& table);
  std::string query(const Kept& table);
  std::string join(const Kept& a, const Kept& b);

  const Ask ask_;
  std::unique_ptr<sqlite3, Closer> database_;
  std::vector<Kept> tables_;
  std::mt19937_64 random_;
};

}  // namespace citcat::testing
