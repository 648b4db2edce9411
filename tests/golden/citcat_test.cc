#include "golden/citcat_test.h"

#include <map>

namespace citcat::testing {

ProcessResult CitcatTest::run(const std::vector<std::string>& arguments) const {
  return run_citcat(arguments, folder_.path());
}

std::string CitcatTest::good(const std::vector<std::string>& arguments) const {
  const ProcessResult result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

void CitcatTest::made_once(const std::function<void()>& make) const {
  static std::map<std::string, TemporaryFolder> made;
  constexpr auto kAll =
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;
  const std::string suite =
      ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  if (const auto before = made.find(suite); before != made.end()) {
    std::filesystem::copy(before->second.path(), file(""), kAll);
    return;
  }
  make();
  if (!HasFailure()) std::filesystem::copy(file(""), made[suite].path(), kAll);
}

void CitcatTest::import_once(const std::vector<std::string>& arguments,
                             const std::string& recording) const {
  static std::map<std::vector<std::string>, std::string> imported;
  std::string& bytes = imported[arguments];
  if (bytes.empty()) {
    std::vector<std::string> line{"import", "-q", "-o", recording};
    line.insert(line.end(), arguments.begin(), arguments.end());
    good(line);
    bytes = read_file(file(recording));
  }
  write_file(file(recording), bytes);
}

void CitcatTest::import_sample(const std::string& recording) const {
  import_once({CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--cpu", "8088", "--initial-state",
               CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start", "interrupt:0"},
              recording);
}

void CitcatTest::import_linux_sample(const std::string& recording) const {
  import_once({CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst", "--internal",
               CITCAT_SOURCE_DIR "/samples/linux/start.side.csv"},
              recording);
}

}  // namespace citcat::testing
