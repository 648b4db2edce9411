#include "sql/database/count_query.h"

#include <gtest/gtest.h>

namespace citcat::sql {
namespace {

std::string counted(const std::string& text) {
  const auto query = as_count_query(text);
  return query ? query->text : "(rows)";
}

TEST(CountQuery, CountsBecomeSumsOfTheColumnOfCounts) {
  EXPECT_EQ(counted("select count(*) from instructions"),
            "select coalesce(sum(rows),0) from instructions");
  EXPECT_EQ(counted("SELECT mnemonic, COUNT ( * ) FROM instructions GROUP BY 1 HAVING count(*)>9"),
            "SELECT mnemonic, coalesce(sum(rows),0) FROM instructions GROUP BY 1 HAVING "
            "coalesce(sum(rows),0)>9");
  EXPECT_EQ(counted("select kind, sum(size) from refs group by kind;"),
            "select kind, sum(rows*(size)) from refs group by kind;");
  EXPECT_EQ(counted("select max(level), count(distinct mnemonic), count(*) from instructions"),
            "select max(level), count(distinct mnemonic), coalesce(sum(rows),0) from instructions");
}

TEST(CountQuery, ConstraintsOnPositionsAreCounted) {
  const auto query = as_count_query(
      "select count(*) from instructions where position between 5 and 9 and position <> 7");
  ASSERT_TRUE(query);
  ASSERT_EQ(query->constraints.size(), 1u);
  EXPECT_EQ(query->constraints.begin()->second, 3);
  EXPECT_EQ(as_count_query("select count(*) from instructions")->constraints.size(), 0u);
}

TEST(CountQuery, WhatNeedsRowsIsLeftAsItIs) {
  for (const char* text : {
           "select * from instructions",
           "select position from instructions",
           "select *, count(*) from instructions",
           "select count(*) from instructions i",
           "select count(*) from instructions, refs",
           "select count(*) from instructions join refs using (position)",
           "select count(*) from events",
           "select count(*) from (select 1 from instructions)",
           "with t as (select 1) select count(*) from instructions",
           "select count(*), avg(level) from instructions",
           "select count(*), group_concat(mnemonic) from instructions",
           "select count(level) from instructions",
           "select sum(distinct size) from refs",
           "select sum(size + sum(level)) from refs",
           "select count(*) over () from instructions",
           "select count(*) filter (where level=3) from instructions",
           "select count(*), rowid from instructions",
           "select \"count\"(*) from instructions",
           "select count(*) from instructions -- where level=3",
           "select sum(rows) from instructions",
           "select count(*) from instructions union select 1",
           "select count(*) from instructions where position in (select position from events)",
           "select count(*) from 'instructions",
       }) {
    EXPECT_EQ(counted(text), "(rows)") << text;
  }
}

}  // namespace
}  // namespace citcat::sql
