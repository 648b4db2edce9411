// The rows of causes.

#include "replay/diagnose/cause_table.h"

#include <gtest/gtest.h>

#include <set>

namespace citcat::test {
namespace {

TEST(CauseTable, HasAGeneratorAndANameOfItsOwnInEveryRow) {
  std::set<std::string_view> names;
  std::set<void (*)(const CauseContext&, CauseList&)> generators;
  for (const CauseRow& row : cause_table()) {
    ASSERT_NE(row.generate, nullptr) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(generators.insert(row.generate).second) << row.name;
  }
  EXPECT_FALSE(names.empty());
}

TEST(CauseTable, EndsWithTheRowThatLeavesTheMachineElsewhere) {
  EXPECT_EQ(cause_table().back().name, "unseen SMI");
}

}  // namespace
}  // namespace citcat::test
