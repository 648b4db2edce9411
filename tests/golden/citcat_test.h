#pragma once
// What tests of the command line have in common: a folder of their own to run the program in.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "golden/process.h"

namespace citcat::testing {

class CitcatTest : public ::testing::Test {
 protected:
  ProcessResult run(const std::vector<std::string>& arguments) const;
  /// A run that must succeed; its output.
  std::string good(const std::vector<std::string>& arguments) const;
  /// The sample capture of the IBM 5150 from its first interrupt on, as a recording.
  void import_sample(const std::string& recording) const;
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
};

}  // namespace citcat::testing
