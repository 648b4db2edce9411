#pragma once
// Golden texts in a folder beside this file: a test for each.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace citcat::testing {

/// The files of tests/golden/`folder` with this extension, in the order of their names.
inline std::vector<std::filesystem::path> golden_files(const std::string& folder,
                                                       const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(CITCAT_SOURCE_DIR "/tests/golden/" + folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The file's name as GoogleTest allows it: letters, digits and underscores.
inline std::string golden_test_name(
    const ::testing::TestParamInfo<std::filesystem::path>& parameter) {
  std::string name = parameter.param.stem().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

/// scripts/rebase is rewriting them.
inline bool is_rebasing() { return std::getenv("CITCAT_REBASE") != nullptr; }

}  // namespace citcat::testing
