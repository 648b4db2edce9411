#include "tools/guest/system_call_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

namespace citcat::tools {
namespace {

void compare_with(const char* path, SystemCallInterface of, std::size_t least) {
  std::ifstream header(path);
  if (!header) GTEST_SKIP() << path << " is not here";
  const std::regex define(R"(#define __NR_(\w+) (\d+))");
  std::size_t compared = 0;
  for (std::string line; std::getline(header, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, define)) continue;
    const auto* const row = find_system_call(static_cast<std::uint32_t>(std::stoul(match[2])), of);
    ASSERT_NE(row, nullptr) << line;
    EXPECT_EQ(row->name, match[1].str()) << line;
    ++compared;
  }
  EXPECT_GT(compared, least);
}

TEST(SystemCallTable, HasTheNamesOfTheSystemsHeader) {
  compare_with("/usr/include/x86_64-linux-gnu/asm/unistd_32.h", SystemCallInterface::i386, 400);
}

TEST(SystemCallTable, HasTheNamesOfTheSystemsHeaderForAmd64) {
  compare_with("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", SystemCallInterface::amd64, 340);
}

TEST(SystemCallTable, KnowsTheLetterOfEveryArgument) {
  for (const auto of : {SystemCallInterface::i386, SystemCallInterface::amd64}) {
    const bool wide = of == SystemCallInterface::amd64;
    for (std::uint32_t n = 0; n < 1000; ++n) {
      const auto* const row = find_system_call(n, of);
      if (row == nullptr || row->arguments == "?") continue;
      EXPECT_LE(row->arguments.size(), kSystemCallArguments) << row->name;
      EXPECT_EQ(row->arguments.find_first_not_of(wide ? "dluxopsvwr" : "duxopsvwr"),
                std::string_view::npos)
          << row->name;
    }
  }
}

TEST(SystemCallTable, KnowsCallsThatMeanSomethingByBothNumbers) {
  using Meaning = SystemCallMeaning;
  EXPECT_EQ(system_call_meaning(11, SystemCallInterface::i386), Meaning::execve);
  EXPECT_EQ(system_call_meaning(59, SystemCallInterface::amd64), Meaning::execve);
  EXPECT_EQ(system_call_meaning(252, SystemCallInterface::i386), Meaning::exit_group);
  EXPECT_EQ(system_call_meaning(231, SystemCallInterface::amd64), Meaning::exit_group);
  EXPECT_EQ(system_call_meaning(3, SystemCallInterface::amd64), Meaning::other);
}

}  // namespace
}  // namespace citcat::tools
