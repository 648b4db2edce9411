// Random queries of every table are answered as SQLite answers them over a copy of its rows.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/table_copies.h"

namespace citcat::testing {
namespace {

const std::vector<CopiedTable> kCopiedEvents{
    {"events"},          {"system"}, {"ports"},  {"syscalls"}, {"processes"},
    {"external_writes"}, {"calls"},  {"blocks"}, {"bus"},      {"symbols"}};

class SqlCopies : public CitcatTest {
 protected:
  TableCopies copies(std::vector<CopiedTable> tables) const {
    return TableCopies(
        [this](const std::string& text) {
          return good({"sql", "r.citcat", text, "--json", "-q"});
        },
        std::move(tables));
  }
};

TEST_F(SqlCopies, OfAnOldProcessorAnswerTheSame) {
  import_sample("r.citcat");
  std::vector<CopiedTable> tables = kCopiedEvents;
  tables.push_back({"instructions"});
  tables.push_back({"refs"});
  tables.push_back({"registers", {"position = 0", "position = 30", "position in (7, 600)"}});
  tables.push_back(
      {"memory",
       {"at = 3 and first = 1000 and last = 1040", "at = 9 and first = 1000 and last = 1000",
        "at = 3 and first = 1020 and last = 1060"}});
  TableCopies all = copies(tables);
  EXPECT_EQ(all.rows("instructions"), 621u);
  all.expect_same(60, 1);
  all.expect_same_joins(60, 2);
}

TEST_F(SqlCopies, OfLinuxAnswerTheSame) {
  import_linux_sample("r.citcat");
  copies(kCopiedEvents).expect_same(25, 3);
  copies({{"instructions"}, {"refs"}}).expect_same(15, 4);
}

TEST_F(SqlCopies, RowsOfAnOrAreNotLost) {
  import_linux_sample("r.citcat");
  const auto value = [&](const std::string& query) {
    return good({"sql", "r.citcat", query, "--csv", "-q"});
  };
  for (const std::string table : {"instructions", "refs"}) {
    const std::string from = "select count(*) from " + table + " where ";
    EXPECT_EQ(value(from + "position < 5000 or position > 20000"),
              value(from + "+position < 5000 or +position > 20000"));
    EXPECT_EQ(value(from + "level = 3 or level = 0"), value(from + "+level = 3 or +level = 0"));
    EXPECT_EQ(value(from + "position < 90 or address > 0xc0000000"),
              value(from + "+position < 90 or +address > 0xc0000000"));
  }
}

TEST_F(SqlCopies, RowsHaveTheSameNumberInEveryScan) {
  import_linux_sample("r.citcat");
  const auto numbers = [&](const std::string& where) {
    return good({"sql", "r.citcat",
                 "select rowid, position from refs where +position between 4000 and 9000 and " +
                     where + " order by 2, 1",
                 "--csv", "-q"});
  };
  const std::string all = numbers("1");
  EXPECT_EQ(all, numbers("position >= 4000"));
  EXPECT_EQ(all, numbers("position between 4000 and 9000"));
  EXPECT_EQ(all, numbers("level in (0, 1, 2, 3)"));
}

}  // namespace
}  // namespace citcat::testing
