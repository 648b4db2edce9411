#include "golden/gdb_script.h"

#include <gtest/gtest.h>

#include <sstream>

#include "golden/process.h"

namespace citcat::testing {

std::string run_gdb(const std::string& arguments, const std::string& script,
                    const std::filesystem::path& where) {
  write_file(where / "script.gdb", "set pagination off\n" + script);
  const ProcessResult result =
      run_shell("\"$CITCAT\" debug " + arguments + " -- -nx -batch -x script.gdb 2>&1", where);
  EXPECT_EQ(result.exit_code, 0) << result.out;
  return result.out;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& mark) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, mark.size(), mark) == 0) lines.push_back(line.substr(mark.size()));
  }
  return lines;
}

}  // namespace citcat::testing
