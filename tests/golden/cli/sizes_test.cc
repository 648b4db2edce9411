// Tools that look at several sizes at once, or at what two tools find: as each alone.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;

class SizesTest : public CitcatTest {
 protected:
  void SetUp() override { import_sample("sample.citcat"); }
  OrderedJson found(const std::string& tool) {
    return OrderedJson::parse(
        good({"analyze", file("sample.citcat").string(), "--tool", tool, "--json"}));
  }
};

TEST_F(SizesTest, SeveralTranslationBuffersMissWhatEachMissesAlone) {
  for (const std::string ways : {"1", "2", "4"}) {
    const OrderedJson rows = found("tlb:entries=4+16+32,ways=" + ways).at("pages");
    ASSERT_EQ(rows.size(), 9u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      OrderedJson row = rows.at(i);
      const auto entries = std::to_string(row.at("entries").get<int>());
      row.erase("entries");
      EXPECT_EQ(row, found("tlb:entries=" + entries + ",ways=" + ways).at("pages").at(i % 3))
          << entries << " entries, " << ways << " ways";
    }
  }
}

TEST_F(SizesTest, SeveralTablesPredictWhatEachPredictsAlone) {
  const OrderedJson rows = found("bpred:entries=1+16+1024").at("sizes");
  ASSERT_EQ(rows.size(), 6u);
  for (const OrderedJson& row : rows) {
    const OrderedJson alone =
        found("bpred:entries=" + std::to_string(row.at("entries").get<int>()));
    const auto counter = row.at("counter").get<std::string>();
    EXPECT_EQ(row.at("correct"), alone.at("correct").at(counter));
    EXPECT_EQ(row.at("percent"), alone.at("percent").at(counter));
  }
}

TEST_F(SizesTest, SizesAreRefusedThatAreNoPowersOfTwoOrThereTwice) {
  for (const std::string tool : {"tlb:entries=16+24", "bpred:entries=16+16", "tlb:entries=16+"}) {
    const ProcessResult result = run({"analyze", file("sample.citcat").string(), "--tool", tool});
    EXPECT_EQ(result.exit_code, 2) << tool;
    EXPECT_NE(result.err.find("powers of two"), std::string::npos) << result.err;
  }
}

TEST_F(SizesTest, PathsOfFuncAreTheTree) {
  const OrderedJson func = found("func:paths=50"), tree = found("tree:paths=50");
  for (const char* const key : {"instructions", "paths", "not_kept", "tree"}) {
    EXPECT_EQ(func.at(key), tree.at(key)) << key;
  }
  EXPECT_EQ(func.at("procedures_by_instructions"), found("func").at("procedures_by_instructions"));
}

}  // namespace
}  // namespace citcat::testing
