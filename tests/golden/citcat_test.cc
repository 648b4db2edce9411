#include "golden/citcat_test.h"

namespace citcat::testing {

ProcessResult CitcatTest::run(const std::vector<std::string>& arguments) const {
  return run_citcat(arguments, folder_.path());
}

std::string CitcatTest::good(const std::vector<std::string>& arguments) const {
  const ProcessResult result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

void CitcatTest::import_sample(const std::string& recording) const {
  good({"import", CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--cpu", "8088",
        "--initial-state", CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start",
        "interrupt:0", "-o", recording});
}

}  // namespace citcat::testing
