// The pages of `view` and `report` must not say of a machine that it agrees where `verify` says
// that it does not: the sample of two processors, without its last invalidation. Nobody uses that
// line again, so that only the store itself shows that it is missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/process.h"
#include "processors/sample_records.h"

namespace citcat::test {
namespace {

using Json = nlohmann::json;
using citcat::testing::ProcessResult;
using citcat::testing::run_citcat;

constexpr std::uint8_t kInvalidationRecord = 12;
constexpr const char* kReason = "the bus does not show that it made the line its own";

class PageVerdict : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<MonitorRecord> records = sample_records();
    const auto last = std::find_if(records.rbegin(), records.rend(), [](const MonitorRecord& r) {
      return r.type == kInvalidationRecord;
    });
    ASSERT_NE(last, records.rend());
    records.erase(std::next(last).base());
    std::string bytes(records.size() * sizeof(MonitorRecord), '\0');
    std::memcpy(bytes.data(), records.data(), bytes.size());
    citcat::testing::write_file(folder_.path() / "bus.bin", bytes);
    const std::string side = CITCAT_SOURCE_DIR "/samples/two-processors/queue.side.";
    const ProcessResult imported = run({"import", "bus.bin", "--internal", "0=" + side + "0.csv",
                                        "--internal", "1=" + side + "1.csv", "-o", "queue.citcat"});
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
  }
  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }

  citcat::testing::TemporaryFolder folder_;
};

TEST_F(PageVerdict, VerifyFindsTheStore) {
  const Json json = Json::parse(run({"verify", "queue.citcat", "--json"}).out);
  EXPECT_EQ(json.at("verdict"), "diverged");
  for (const Json& processor : json.at("processors")) EXPECT_EQ(processor.at("verdict"), "match");
  EXPECT_NE(json.dump().find(kReason), std::string::npos);
}

TEST_F(PageVerdict, AnExportedPageSaysTheSame) {
  const ProcessResult result = run({"view", "queue.citcat", "--export", "page.html"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(citcat::testing::read_file(folder_.path() / "page.html").find(kReason),
            std::string::npos);
}

TEST_F(PageVerdict, AReportSaysTheSame) {
  const ProcessResult result = run({"report", "queue.citcat", "-o", "page.html"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(citcat::testing::read_file(folder_.path() / "page.html").find(kReason),
            std::string::npos);
}

}  // namespace
}  // namespace citcat::test
