// What every command owes the user, asked of all commands that the program's own table lists: a new
// command is covered the moment it is added there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "cli/command.h"
#include "golden/process.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// The words of a command line as a shell has them, up to a pipe, a redirection or a comment.
std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false, begun = false;
  for (const char c : line) {
    if (!quoted && std::string("|<>#").find(c) != std::string::npos) break;
    if (c == '\'') {
      quoted = !quoted;
      begun = true;
    } else if (quoted || c != ' ') {
      words.back() += c;
      begun = true;
    } else if (std::exchange(begun, false)) {
      words.emplace_back();
    }
  }
  if (!begun) words.pop_back();
  return words;
}

/// The command lines of an example, backslash continuations joined, without the program's name.
std::vector<std::vector<std::string>> example_lines(const Command& command) {
  std::string joined = command.example;
  for (std::size_t at; (at = joined.find("\\\n")) != std::string::npos;) joined.erase(at, 2);
  std::istringstream stream(joined);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(stream, line);) {
    std::vector<std::string> words = split_words(line);
    if (words.empty() || words.front() != "citcat") continue;
    words.erase(words.begin());
    lines.push_back(words);
  }
  return lines;
}

/// The file that a word of an example names: "boot.sr", "mix.0001-of-0002", "mine.so" of
/// "./mine.so:limit=10"; empty for "--cpu" and "1.5ms".
std::string file_of(const std::string& word) {
  std::string name = word.substr(0, word.find(':'));
  if (name.starts_with("./")) name.erase(0, 2);
  const std::size_t dot = name.rfind('.');
  const bool is_file = !name.empty() &&
                       std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                       dot != std::string::npos && dot + 1 < name.size();
  return is_file ? name : "";
}
bool names_file(const std::string& word) { return !file_of(word).empty(); }

/// GoogleTest allows letters, digits and underscores only.
std::string test_name(const ::testing::TestParamInfo<const Command*>& parameter) {
  std::string name = parameter.param->name;
  for (char& character : name) {
    if (std::isalnum(static_cast<unsigned char>(character)) == 0) character = '_';
  }
  return name;
}

/// The words of `text` that are long options: "--jobs".
std::set<std::string> long_options(const std::string& text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  std::set<std::string> words;
  for (std::size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at)) {
    std::size_t end = at + 2;
    if (end < text.size() && is_letter(text[end])) {
      while (end < text.size() && (is_letter(text[end]) || text[end] == '-')) ++end;
    }
    if (end > at + 3) words.insert(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// The part of docs/cli.md under the heading of `command`; empty when there is none.
std::string documentation(const std::string& command) {
  const std::string page = read_file(CITCAT_SOURCE_DIR "/docs/cli.md");
  const std::size_t begin = page.find("\n## " + command + "\n");
  if (begin == std::string::npos) return "";
  const std::size_t body = begin + 1;
  return page.substr(body, page.find("\n## ", body) - body);
}

class EveryCommand : public ::testing::TestWithParam<const Command*> {
 protected:
  const Command& command() const { return *GetParam(); }
};

TEST(Program, ListsEveryCommandInItsHelp) {
  const ProcessResult result = run_citcat({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  ASSERT_THAT(command_list(), Not(IsEmpty()));
  for (const CommandGroup& group : command_groups()) {
    const bool folded = group.title == std::string(kFoldedGroup);
    if (!folded) {
      EXPECT_THAT(result.out, HasSubstr(std::string("\n\n") + group.title + ":\n"));
    }
    for (const Command* command : group.commands) {
      if (folded) {
        EXPECT_THAT(result.out, HasSubstr(command->name));
      } else {
        EXPECT_THAT(result.out, HasSubstr(std::string("\n  ") + command->name + " "));
        EXPECT_THAT(result.out, HasSubstr(command->summary));
      }
    }
  }
}

TEST(Program, SaysItsVersion) {
  const ProcessResult result = run_citcat({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, StartsWith("citcat " CITCAT_VERSION));
}

TEST(Program, WithoutACommandIsAUsageError) {
  const ProcessResult result = run_citcat({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("citcat: error: "));
}

TEST(Program, NamesTheCommandItDoesNotKnow) {
  const ProcessResult result = run_citcat({"no-such-command"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no-such-command"));
}

TEST(Program, NeverSendsControlCharactersOfAFileNameToTheTerminal) {
  const ProcessResult result = run_citcat({"info", "\x1b[31mred.citcat"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.err, HasSubstr("\\x1b[31mred.citcat"));
}

TEST_P(EveryCommand, HelpHasItsSummaryAndAnExample) {
  const ProcessResult result = run_citcat({command().name, "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr(command().summary));
  EXPECT_THAT(result.out, HasSubstr(std::string("EXAMPLE\n  citcat ") + command().name + " "));
  EXPECT_THAT(result.out, HasSubstr("--quiet"));
}

TEST_P(EveryCommand, SummaryIsOneImperativeLine) {
  const std::string summary = command().summary;
  EXPECT_THAT(summary, Not(HasSubstr("\n")));
  EXPECT_NE(summary.back(), '.');
  EXPECT_TRUE(std::isupper(static_cast<unsigned char>(summary.front())));
}

TEST_P(EveryCommand, DocumentsItsOptionsAndNoOthers) {
  std::set<std::string> offered = long_options(run_citcat({command().name, "--help"}).out);
  for (const char* const common : {"--help", "--quiet", "--memory-limit"}) offered.erase(common);
  EXPECT_EQ(long_options(documentation(command().name)), offered);
}

TEST_P(EveryCommand, UnknownOptionIsAUsageError) {
  const ProcessResult result = run_citcat({command().name, "--no-such-option"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("citcat: error: "));
}

TEST_P(EveryCommand, ExampleParsesAndMissingFilesAreASystemErrorThatNamesOne) {
  ASSERT_THAT(example_lines(command()), Not(IsEmpty()));
  for (const std::vector<std::string>& line : example_lines(command())) {
    const TemporaryFolder folder;
    const ProcessResult result = run_citcat(line, folder.path());
    if (std::none_of(line.begin(), line.end(), names_file)) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      continue;
    }
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    // `record` may say before what it changes of the command line.
    EXPECT_THAT(result.err, HasSubstr("citcat: error: "));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "an output was left behind";
  }
}

/// What an input that is there may be instead of what was asked for.
struct WrongInput {
  const char* name;
  void (*make)(const std::filesystem::path& path);
  bool folder;
};
const WrongInput kWrongInputs[] = {
    {"empty", [](const std::filesystem::path& path) { write_file(path, ""); }, false},
    {"another kind of file",
     [](const std::filesystem::path& path) { write_file(path, "no bus was seen here\n"); }, false},
    {"binary",
     [](const std::filesystem::path& path) { write_file(path, std::string(999, '\xf4')); }, false},
    {"folder", [](const std::filesystem::path& path) { std::filesystem::create_directory(path); },
     true},
};

/// Relative paths of all that is in a folder, with the content of files.
std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    all[name] = entry.is_regular_file() ? read_file(entry.path()) : "";
  }
  return all;
}

TEST_P(EveryCommand, WrongInputsAreBadInputAndNothingIsLeftBehind) {
  for (const WrongInput& wrong : kWrongInputs) {
    for (const std::vector<std::string>& line : example_lines(command())) {
      if (std::none_of(line.begin(), line.end(), names_file)) continue;
      const TemporaryFolder folder;
      for (const std::string& word : line) {
        const std::string name = file_of(word);
        if (name.empty()) continue;
        std::filesystem::create_directories((folder.path() / name).parent_path());
        if (!std::filesystem::exists(folder.path() / name)) wrong.make(folder.path() / name);
      }
      const auto before = contents(folder.path());
      const ProcessResult result = run_citcat(line, folder.path());
      const std::string what = std::string(wrong.name) + ": " + result.err;
      // Where a folder may be the input, one without it is bad input; elsewhere it cannot be read.
      // The files of `record` are the emulator's, which must be there first.
      const bool system_error = wrong.folder || command().name == std::string("record");
      EXPECT_TRUE(result.exit_code == 3 || (system_error && result.exit_code == 4)) << what;
      EXPECT_THAT(result.out, IsEmpty()) << what;
      EXPECT_THAT(result.err, HasSubstr("citcat: error: ")) << what;
      EXPECT_EQ(contents(folder.path()), before) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CommandLine, EveryCommand, ::testing::ValuesIn(command_list()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryCommand);

}  // namespace
}  // namespace citcat::testing
