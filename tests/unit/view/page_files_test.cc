// The modules of the page are one script in an exported page: no name may be there twice.

#include "view/page/page_files.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

namespace citcat::view {
namespace {

TEST(PageFiles, HaveEachNameOfTheOutermostLevelOnce) {
  const std::regex declaration(R"(^(?:export )?(?:async )?(?:function|const|let|class) (\w+))");
  std::map<std::string, std::string> files;
  std::size_t modules = 0;
  for (const PageFile& file : page_files()) {
    const std::string name(file.name);
    if (!name.ends_with(".js")) continue;
    ++modules;
    std::string rest(file.content);
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      const std::string line = rest.substr(0, end);
      std::smatch found;
      if (!std::regex_search(line, found, declaration)) continue;
      const auto [first, is_new] = files.emplace(found[1], name);
      EXPECT_TRUE(is_new) << found[1] << " in " << first->second << " and " << name;
    }
  }
  EXPECT_GT(modules, 10u);
}

/// They are joined by taking such lines away.
TEST(PageFiles, ImportInOneLineEach) {
  for (const PageFile& file : page_files()) {
    const std::string content(file.content);
    for (std::size_t at = content.find("\nimport "); at != std::string::npos;
         at = content.find("\nimport ", at + 1)) {
      const std::string line = content.substr(at + 1, content.find('\n', at + 1) - at - 1);
      EXPECT_TRUE(line.ends_with(".js\";")) << file.name << ": " << line;
    }
    EXPECT_EQ(content.find("\nexport {"), std::string::npos) << file.name;
    EXPECT_EQ(content.find("\nexport default"), std::string::npos) << file.name;
  }
}

}  // namespace
}  // namespace citcat::view
