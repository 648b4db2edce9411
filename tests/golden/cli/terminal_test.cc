// What a person sees who runs the program on a terminal, and what is not there elsewhere: colours,
// titles above columns, a progress line that fits. `script` (util-linux) is the terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "golden/citcat_test.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kEscape = "\x1b[";
const std::string kLongCapture = kArea5150;

class TerminalTest : public CitcatTest {
 protected:
  void SetUp() override { import_sample("r.citcat"); }

  /// What a terminal of `columns` shows of a command line; `environment` as for env(1).
  std::string shown(const std::string& command, const std::string& environment = "",
                    unsigned columns = 80) const {
    const std::string inner = "stty cols " + std::to_string(columns) + "; " + command;
    return run_shell("export CITCAT; env -u NO_COLOR TERM=xterm " + environment + " script -qec '" +
                         inner + "' /dev/null </dev/null",
                     file(""))
        .out;
  }
  std::string piped(const std::string& command) const {
    return run_shell(command + " 2>&1 | cat", file("")).out;
  }
};

TEST_F(TerminalTest, AVerdictHasItsColour) {
  EXPECT_THAT(shown("$CITCAT verify r.citcat"), HasSubstr("\x1b[1m\x1b[32mmatch\x1b[0m"));
  EXPECT_THAT(shown("$CITCAT check r.citcat"), HasSubstr("\x1b[32msound\x1b[0m"));
}

TEST_F(TerminalTest, AnErrorIsRed) {
  EXPECT_THAT(shown("$CITCAT info no-such-file.kt"),
              HasSubstr("citcat: \x1b[1m\x1b[31merror:\x1b[0m no-such-file.kt"));
}

TEST_F(TerminalTest, NobodyHasColoursWithNoColorOrOnADumbTerminal) {
  for (const char* const environment : {"NO_COLOR=1", "TERM=dumb"}) {
    EXPECT_THAT(shown("$CITCAT verify r.citcat", environment), HasSubstr("match: "));
    EXPECT_THAT(shown("$CITCAT verify -q r.citcat", environment), Not(HasSubstr(kEscape)));
    EXPECT_THAT(shown("$CITCAT info no-such-file.kt", environment), Not(HasSubstr(kEscape)));
  }
  EXPECT_THAT(shown("$CITCAT verify r.citcat", "NO_COLOR="), HasSubstr(kEscape));
}

TEST_F(TerminalTest, APipeHasNeitherColoursNorTitles) {
  EXPECT_THAT(piped("$CITCAT verify r.citcat"), Not(HasSubstr(kEscape)));
  EXPECT_THAT(piped("$CITCAT info no-such-file.kt"), StartsWith("citcat: error: "));
  EXPECT_THAT(piped("$CITCAT dump " + kLongCapture + " --to 4"), Not(HasSubstr("address")));
}

TEST_F(TerminalTest, NothingThatAFileIsCalledOrHoldsCommandsIt) {
  const std::string name = "\x1b[31mred\x07";
  std::filesystem::copy_file(file("r.citcat"), file(name + ".citcat"));
  for (const char* const command : {"$CITCAT info *red*.citcat", "$CITCAT check *red*.citcat"}) {
    const std::string screen = shown(command, "NO_COLOR=1");
    EXPECT_THAT(screen, Not(HasSubstr("\x1b"))) << command;
    EXPECT_THAT(screen, HasSubstr("\\x1b[31mred\\x07.citcat")) << command;
  }
  // A pipe gets what there is.
  EXPECT_THAT(piped("$CITCAT check *red*.citcat"), StartsWith(name));
}

/// Each title stands above its column: where it begins, a word of the first record does.
void expect_titles_above_columns(const std::string& screen, const std::string& title) {
  std::string plain = screen;
  for (std::size_t at; (at = plain.find(kEscape)) != std::string::npos;) {
    plain.erase(at, plain.find('m', at) + 1 - at);
  }
  plain.erase(std::remove(plain.begin(), plain.end(), '\r'), plain.end());
  const std::size_t end = plain.find('\n');
  const std::string titles = plain.substr(0, end);
  const std::string record = plain.substr(end + 1, plain.find('\n', end + 1) - end - 1);
  const std::size_t column = titles.find(title);
  ASSERT_NE(column, std::string::npos) << screen;
  ASSERT_LT(column, record.size()) << screen;
  EXPECT_NE(record[column], ' ') << screen;
  EXPECT_TRUE(column == 0 || record[column - 1] == ' ') << screen;
}

TEST_F(TerminalTest, DumpHasTitlesAboveItsColumns) {
  good({"replay", "r.citcat", "-o", "r.ktz"});
  for (const char* const title : {"address", "bytes", "instruction"}) {
    expect_titles_above_columns(shown("$CITCAT dump r.ktz --from 10 --to 12"), title);
  }
  for (const char* const title : {"operation", "address", "data"}) {
    expect_titles_above_columns(shown("$CITCAT dump " + kLongCapture + " --to 9"), title);
  }
  expect_titles_above_columns(shown("$CITCAT dump r.citcat --state"), "register");
  EXPECT_THAT(shown("$CITCAT dump r.ktz --to 3 --format json"), StartsWith("{"));
  EXPECT_THAT(shown("$CITCAT dump r.ktz --to 3 --format csv"), StartsWith("kind,"));
}

}  // namespace
}  // namespace citcat::testing
