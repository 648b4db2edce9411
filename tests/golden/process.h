#pragma once
// Runs the program under test as a user would: arguments in; output, errors and exit status out.

#include <filesystem>
#include <string>
#include <vector>

namespace citcat::testing {

struct ProcessResult {
  int exit_code = -1;  ///< -signal when it was killed by one
  std::string out;
  std::string err;
};

/// Runs the built citcat with `arguments` in the folder `where`, with no input.
ProcessResult run_citcat(const std::vector<std::string>& arguments,
                         const std::filesystem::path& where = ".");

/// Runs a script of bash's in the folder `where`; "$CITCAT" is the program. Fails where the last
/// command of a pipe succeeds and one before it does not. Ends after a minute with status 124.
ProcessResult run_shell(const std::string& script, const std::filesystem::path& where);

/// A folder that exists as long as this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace citcat::testing
