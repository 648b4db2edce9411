#pragma once
// What tests of the command line have in common: a folder of their own to run the program in.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
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
  /// The sample of Linux that starts, as a recording.
  void import_linux_sample(const std::string& recording) const;
  /// Calls `make` in the first test of the suite, whose folder holds nothing else then, and copies
  /// the files that it left into the folders of all later ones.
  void made_once(const std::function<void()>& make) const;
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

 private:
  /// Imports once in the whole program, and writes the same recording each time.
  void import_once(const std::vector<std::string>& arguments, const std::string& recording) const;

  TemporaryFolder folder_;
};

}  // namespace citcat::testing
