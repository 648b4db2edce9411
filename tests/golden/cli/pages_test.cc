// What an installation has of the command line beside the program: manual pages that groff accepts,
// and completion as bash, fish and zsh do it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kPages = CITCAT_PAGES;

Words lines_of(const std::string& text) {
  std::istringstream stream(text);
  Words lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

class PagesTest : public CitcatTest {
 protected:
  Json description(const std::string& command) const {
    return Json::parse(good({"help", command, "--json"}));
  }
  Words commands() const {
    Words names;
    const Json all = Json::parse(good({"help", "--json"}));
    for (const Json& row : all.at("commands")) {
      names.push_back(row.at("command"));
    }
    return names;
  }
  /// All names of a command's options, as its help has them.
  Words options(const std::string& command) const {
    Words names;
    const Json one = description(command);
    for (const Json& option : one.at("options")) {
      for (const Json& name : option.at("names")) names.push_back(name);
    }
    return names;
  }
  std::string shell(const std::string& script) const {
    const ProcessResult result = run_shell(script, file(""));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  /// What bash offers for the last of `words`.
  Words bash(const Words& words) const {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    return lines_of(shell("source " + kPages + "/bash/citcat; COMP_WORDS=(" + line +
                          "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _citcat; "
                          "printf '%s\\n' \"${COMPREPLY[@]}\""));
  }
  Words fish(const std::string& line) const {
    // Each with a tab and its description behind it.
    return lines_of(shell("fish --no-config -c 'source " + kPages +
                          "/fish/citcat.fish; complete -C \"" + line + "\"' | cut -f 1"));
  }
  /// The words that zsh makes of a line when the tabulator key is pressed at its end.
  Words zsh(const std::string& line) const;
};

Words PagesTest::zsh(const std::string& line) const {
  write_file(file("try.zsh"),
             "zmodload zsh/zpty\nTERM=dumb zpty -b z zsh -f -i\n"
             "zpty -w z 'fpath=(" +
                 kPages +
                 "/zsh $fpath); autoload -Uz compinit; compinit -D -u; "
                 "citcat() { print -rl -- wor\"\"ds $@ en\"\"d }; print rea\"\"dy'\n"
                 "zpty -r z out '*ready*'\n"
                 "zpty -n -w z '" +
                 line +
                 "'$'\\t\\n'\n"
                 "zpty -r z out '*words*end*'\nprint -r -- $out\n");
  Words screen = lines_of(shell("zsh -f try.zsh"));
  const auto begin = std::find(screen.begin(), screen.end(), "words");
  const auto end = std::find(begin, screen.end(), "end");
  if (end == screen.end()) return {"(nothing came)"};
  return {begin + 1, end};
}

TEST_F(PagesTest, AreThoseOfTheProgram) {
  shell(CITCAT_PAGES_PROGRAM " pages");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(file("pages"))) {
    if (!entry.is_regular_file()) continue;
    const std::filesystem::path name = entry.path().lexically_relative(file("pages"));
    EXPECT_EQ(read_file(entry.path()), read_file(kPages / name)) << name;
    ++files;
  }
  EXPECT_EQ(files, commands().size() + 4);  // citcat.1, and a file for each shell
}

TEST_F(PagesTest, AManualPageHasEveryOptionOfItsCommandAndNoOther) {
  for (const std::string& command : commands()) {
    const std::string page =
        shell("gzip -dc " + kPages + "/man1/citcat-" + command +
              ".1.gz | groff -man -Tascii -P-cbou | sed -n '/^OPTIONS/,/^EX/p'");
    std::set<std::string> found;
    for (const std::string& line : lines_of(page)) {
      if (!line.starts_with("       -")) continue;
      std::string tag = line.substr(7);
      while (tag.starts_with('-')) {
        const std::size_t end = std::min(tag.find_first_of(", "), tag.size());
        found.insert(tag.substr(0, end));
        tag.erase(0, std::min(tag.find_first_not_of(", ", end), tag.size()));
      }
    }
    const Words expected = options(command);
    EXPECT_EQ(found, std::set<std::string>(expected.begin(), expected.end())) << command;
  }
}

TEST_F(PagesTest, GroffFindsNothingWrongWithThem) {
  EXPECT_THAT(
      shell("for page in " + kPages + "/man1/*.1; do groff -man -ww -z -Tutf8 $page 2>&1; done"),
      IsEmpty());
}

TEST_F(PagesTest, BashCompletesCommandsOptionsAndWords) {
  Words names = commands();
  names.insert(names.end(), {"--help", "--version"});
  EXPECT_THAT(bash({"citcat", ""}), UnorderedElementsAreArray(names));
  EXPECT_THAT(bash({"citcat", "ver"}), ElementsAre("verify"));
  for (const std::string& command : commands()) {
    EXPECT_THAT(bash({"citcat", command, "-"}), UnorderedElementsAreArray(options(command)));
  }
  EXPECT_THAT(bash({"citcat", "import", "a.sr", "--bus", ""}),
              ElementsAre("none", "write-through", "write-back"));
  EXPECT_THAT(bash({"citcat", "help", "ch"}), UnorderedElementsAre("check", "checkpoint"));
  // Nothing of its own where a file is wanted: bash offers files then.
  EXPECT_THAT(bash({"citcat", "verify", "bo"}), ElementsAre(""));
}

TEST_F(PagesTest, FishCompletesCommandsOptionsWordsAndFiles) {
  for (const std::string& command : commands()) EXPECT_THAT(fish("citcat "), Contains(command));
  for (const std::string& command : commands()) {
    Words expected;
    for (const std::string& name : options(command)) {
      if (name.starts_with("--")) expected.push_back(name);
    }
    EXPECT_THAT(fish("citcat " + command + " --"), UnorderedElementsAreArray(expected));
  }
  EXPECT_THAT(fish("citcat import --bus write-b"), ElementsAre("write-back"));
  write_file(file("boot.citcat"), "");
  EXPECT_THAT(fish("citcat verify bo"), ElementsAre("boot.citcat"));
}

TEST_F(PagesTest, ZshCompletesCommandsOptionsWordsAndFiles) {
  EXPECT_THAT(zsh("citcat im"), ElementsAre("import"));
  EXPECT_THAT(zsh("citcat import --expl"), ElementsAre("import", "--explain-channels"));
  EXPECT_THAT(zsh("citcat import --bus write-b"), ElementsAre("import", "--bus", "write-back"));
  EXPECT_THAT(zsh("citcat help checkp"), ElementsAre("help", "checkpoint"));
  write_file(file("boot.citcat"), "");
  EXPECT_THAT(zsh("citcat verify bo"), ElementsAre("verify", "boot.citcat"));
}

TEST_F(PagesTest, ZshKnowsEveryOption) {
  const std::string script = read_file(kPages + "/zsh/_citcat");
  for (const std::string& command : commands()) {
    const std::size_t begin = script.find("\n        " + command + ")");
    ASSERT_NE(begin, std::string::npos) << command;
    const std::string part = script.substr(begin, script.find(";;", begin) - begin);
    for (const std::string& name : options(command)) {
      EXPECT_NE(part.find(name), std::string::npos) << command << " " << name;
    }
  }
}

}  // namespace
}  // namespace citcat::testing
