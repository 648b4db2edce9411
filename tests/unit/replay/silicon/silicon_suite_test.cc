// The replayer as an 80286 and as an 8086: a few single-step tests of every form, against the real
// processors.
// scripts/test-silicon runs all of them and prints the table of docs/silicon.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "silicon/suite_run.h"
#include "unit/x86/golden_trace.h"
#include "unit/x86/single_step_suite.h"

namespace citcat {
namespace {

constexpr std::size_t kTestsOfEachForm = 4;
constexpr std::uint16_t kAllFlags = 0xffff;

void expect_all_explained(const std::vector<std::string>& files,
                          const std::map<std::string, std::uint16_t>& masks, std::size_t limit) {
  unsigned equal = 0, masked = 0, explained = 0;
  for (const std::string& path : files) {
    const std::string form = silicon::form_of(path);
    const auto mask = masks.find(form);
    const silicon::FormResult result = silicon::run_form(
        read_moo(path), form, mask == masks.end() ? kAllFlags : mask->second, limit);
    equal += result.counts[static_cast<std::size_t>(silicon::Outcome::equal)];
    masked += result.counts[static_cast<std::size_t>(silicon::Outcome::masked)];
    explained += result.counts[static_cast<std::size_t>(silicon::Outcome::explained)];
    for (const std::string& line : result.unexplained) ADD_FAILURE() << form << " " << line;
  }
  std::printf("%u tests equal, %u but for undefined flags, %u by a named rule\n", equal, masked,
              explained);
  EXPECT_GT(equal, masked + explained);
}

/// Files of single-step tests in a folder, sorted.
std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find(".MOO") != std::string::npos) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(SiliconSuite, EveryFormOfThe80286ReplaysAsTheProcessorRanIt) {
  const std::vector<std::string> files = test::suite_files();
  if (files.empty()) GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  const std::string metadata =
      (std::filesystem::path(files.front()).parent_path() / "metadata.json").string();
  expect_all_explained(files, silicon::read_flag_masks(metadata), kTestsOfEachForm);
}

// Without the suite's table of undefined flags: all of them follow a rule.
TEST(SiliconSuite, EveryFormOfThe8086ReplaysAsTheProcessorRanIt) {
  const std::string folder = test::shared_data_folder() + "/data/moo/8086-real";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  }
  expect_all_explained(files_of(folder), {}, kTestsOfEachForm);
}

TEST(SiliconSuite, TheSampleTestsReplayAsTheProcessorRanThem) {
  const std::vector<std::string> files = files_of(CITCAT_SOURCE_DIR "/samples/moo");
  ASSERT_FALSE(files.empty());
  const auto masks = silicon::read_flag_masks(CITCAT_SOURCE_DIR "/samples/moo/metadata.json");
  expect_all_explained(files, masks, 40);
}

TEST(SiliconSuite, TheSampleTestsOfAn8086ReplayWithAllFlags) {
  const std::vector<std::string> files = files_of(CITCAT_SOURCE_DIR "/samples/moo-8086");
  ASSERT_FALSE(files.empty());
  expect_all_explained(files, {}, 60);
}

TEST(SiliconSuite, AWrongRegisterOrByteIsNotExplained) {
  MooFile file = read_moo(CITCAT_SOURCE_DIR "/samples/moo/F6.2.MOO.gz");
  std::erase_if(file.tests, [](const MooTest& test) { return test.final.ram.empty(); });
  ASSERT_GE(file.tests.size(), 2u);
  file.tests[0].final.registers.front().value ^= 1;
  file.tests[1].final.ram.front().value ^= 0x10;
  const silicon::FormResult result = silicon::run_form(file, "F6.2", kAllFlags, 2);
  EXPECT_EQ(result.unexplained.size(), 2u);
}

}  // namespace
}  // namespace citcat
