#include "tools/host/names.h"

#include <gtest/gtest.h>

#include "formats/io/error.h"
#include "tools/host/tool_output.h"

namespace citcat::tools {
namespace {

TEST(LinearRanges, HaveTheirLastAddressUpToTheEndOfMemory) {
  const LinearRange all = parse_linear_range("0-ffffffff", "--tool watch: at=");
  EXPECT_TRUE(all.has(LinearAddr{0}));
  EXPECT_TRUE(all.has(LinearAddr{0xffffffff}));
  const LinearRange one = parse_linear_range("0xffffffff", "code=");
  EXPECT_TRUE(one.has(LinearAddr{0xffffffff}));
  EXPECT_FALSE(one.has(LinearAddr{0xfffffffe}));
  EXPECT_FALSE(one.has(LinearAddr{0}));
}

TEST(LinearRanges, ThatAreNoneAreRefused) {
  for (const char* const text :
       {"", "-", "20-10", "10000000000000000", "0-10000000000000000", "1x", "1-2-3"}) {
    EXPECT_THROW(parse_linear_range(text, "code="), UsageError) << text;
  }
}

TEST(FilesOfGroups, AreNamedBeforeTheEndingAndDifferWhereTheGroupsDo) {
  EXPECT_EQ(grouped_path("a.b/boot.kt.zst", "level=3"), "a.b/boot.level=3.kt.zst");
  EXPECT_EQ(grouped_path("boot", "process=sh,level=3"), "boot.process=sh,level=3");
  EXPECT_EQ(grouped_path("x.kt", "process=a/b"), "x.process=a%2Fb.kt");
  EXPECT_EQ(grouped_path("x.kt", "process=a%2Fb"), "x.process=a%252Fb.kt");
  EXPECT_EQ(grouped_path("x.kt", "process=a b\n"), "x.process=a%20b%0A.kt");
}

}  // namespace
}  // namespace citcat::tools
