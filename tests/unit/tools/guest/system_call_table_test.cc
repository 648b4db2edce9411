#include "tools/guest/system_call_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

namespace citcat::tools {
namespace {

TEST(SystemCallTable, HasTheNamesOfTheSystemsHeader) {
  std::ifstream header("/usr/include/x86_64-linux-gnu/asm/unistd_32.h");
  if (!header) GTEST_SKIP() << "Linux's header for i386 is not here";
  const std::regex define(R"(#define __NR_(\w+) (\d+))");
  std::size_t compared = 0;
  for (std::string line; std::getline(header, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, define)) continue;
    const auto* const row = find_system_call(static_cast<std::uint32_t>(std::stoul(match[2])));
    ASSERT_NE(row, nullptr) << line;
    EXPECT_EQ(row->name, match[1].str()) << line;
    ++compared;
  }
  EXPECT_GT(compared, 400u);
}

TEST(SystemCallTable, KnowsTheLetterOfEveryArgument) {
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const auto* const row = find_system_call(n);
    if (row == nullptr || row->arguments == "?") continue;
    EXPECT_LE(row->arguments.size(), kSystemCallArguments) << row->name;
    EXPECT_EQ(row->arguments.find_first_not_of("duxopsvwr"), std::string_view::npos) << row->name;
  }
}

}  // namespace
}  // namespace citcat::tools
