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

void CitcatTest::made_once(const std::string& what, const std::function<void()>& make) const {
  static std::map<std::string, TemporaryFolder> made;
  constexpr auto kAll =
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;
  if (const auto before = made.find(what); before != made.end()) {
    std::filesystem::copy(before->second.path(), file(""), kAll);
    return;
  }
  make();
  if (!HasFailure()) std::filesystem::copy(file(""), made[what].path(), kAll);
}

void CitcatTest::import_sample(const std::string& recording) const {
  static const std::string bytes = [this, &recording] {
    good({"import", CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--cpu", "8088",
          "--initial-state", CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start",
          "interrupt:0", "-o", recording});
    return read_file(file(recording));
  }();
  write_file(file(recording), bytes);
}

void CitcatTest::import_linux_sample(const std::string& recording) const {
  static const std::string bytes = [this, &recording] {
    good({"import", CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst", "--internal",
          CITCAT_SOURCE_DIR "/samples/linux/start.side.csv", "-o", recording, "-q"});
    return read_file(file(recording));
  }();
  write_file(file(recording), bytes);
}

}  // namespace citcat::testing
