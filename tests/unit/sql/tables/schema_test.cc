// The documented schema is the one that there is.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "sql/tables/table.h"

namespace citcat::sql {
namespace {

/// The part of docs/sql.md about a table; empty where there is none.
std::string section_of(const std::string& page, const std::string& table) {
  const std::string head = "\n## " + table + "\n";
  const std::size_t begin = page.find(head);
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("\n## ", begin + head.size()) - begin);
}

TEST(SqlSchema, DocumentationHasEveryTableAndColumn) {
  std::ifstream in(CITCAT_SOURCE_DIR "/docs/sql.md");
  std::stringstream page;
  page << in.rdbuf();
  for (const Table* table : table_list()) {
    const std::string section = section_of(page.str(), table->name());
    EXPECT_NE(section, "") << table->name();
    for (const Column& column : table->columns()) {
      EXPECT_NE(section.find("| `" + std::string(column.name) + "` |"), std::string::npos)
          << table->name() << "." << column.name;
      EXPECT_NE(std::string(column.meaning), "") << table->name() << "." << column.name;
    }
  }
}

TEST(SqlSchema, ColumnsHaveNamesOfTheirOwnAndFitASet) {
  for (const Table* table : table_list()) {
    std::set<std::string> names;
    for (const Column& column : table->columns()) {
      EXPECT_TRUE(names.insert(column.name).second) << table->name() << "." << column.name;
    }
    // The last bit of SQLite's set stands for all further columns.
    EXPECT_LT(table->columns().size(), 63u) << table->name();
  }
}

}  // namespace
}  // namespace citcat::sql
