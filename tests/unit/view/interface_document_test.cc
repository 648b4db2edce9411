// docs/formats/view-interface.md says what the questions are, what may be said with them, and what
// is in their answers.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"
#include "view/model/run_view.h"

namespace citcat::view {
namespace {

using P = test::WatchedProgram;
using Words = std::set<std::string>;

/// What stands between grave accents.
Words accented(const std::string& text) {
  static const std::regex accents("`([^`]+)`");
  Words words;
  for (std::sregex_iterator at(text.begin(), text.end(), accents), end; at != end; ++at) {
    words.insert((*at)[1]);
  }
  return words;
}

struct Documented {
  Words parameters, answer;
};

class InterfaceDocument : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    std::ifstream in(CITCAT_SOURCE_DIR "/docs/formats/view-interface.md");
    const std::regex row(R"(^\| `(\w+)` \|(.*?)\|(.*)\|$)"), values(R"(\([^)]*\))");
    for (std::string line; std::getline(in, line);) {
      std::smatch cells;
      if (line.starts_with("Answers about a moment have")) in_all_ = line;
      if (!std::regex_match(line, cells, row)) continue;
      documented_[cells[1]] = {accented(std::regex_replace(cells[2].str(), values, "")),
                               accented(cells[3])};
    }
    in_all_ += " `place`";
    P().store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    view_.emplace(*file_, symbols_, RunViewOptions{});
    while (view_->look_further(100)) {
    }
  }
  /// Asks, and notes which keys the answer has.
  void ask(const std::string& question, Query::Values values = {}) {
    note(question, view_->answer(question, Query(std::move(values))));
  }
  void note(const std::string& question, const Json& json) {
    if (json.is_string()) seen_[question].insert(json.get<std::string>());
    for (auto it = json.begin(); json.is_object() && it != json.end(); ++it) {
      // Registers are the processor's.
      if (it.key() != "changes") note(question, it.value());
      seen_[question].insert(it.key());
      keys_[question].insert(it.key());
    }
    if (json.is_array()) {
      for (const Json& one : json) note(question, one);
    }
  }

  std::string in_all_;
  std::map<std::string, Documented> documented_;
  std::map<std::string, Words> seen_, keys_;
  std::optional<RecordingFile> file_;
  Symbols symbols_;
  std::optional<RunView> view_;
};

TEST_F(InterfaceDocument, NamesEveryQuestionWithWhatMayBeSaid) {
  Words questions{"runs", "causes"};
  for (const Question& question : RunView::questions()) {
    questions.insert(question.name);
    const Words parameters(question.parameters.begin(), question.parameters.end());
    EXPECT_EQ(documented_[question.name].parameters, parameters) << question.name;
  }
  Words documented;
  for (const auto& [name, row] : documented_) documented.insert(name);
  EXPECT_EQ(documented, questions);
}

TEST_F(InterfaceDocument, NamesEveryKeyOfAnAnswer) {
  for (const char* question : {"run", "timeline", "events", "processes", "syscalls"}) ask(question);
  for (int n = 0; n <= static_cast<int>(P::kInstructions); ++n) {
    const std::string at = std::to_string(n);
    for (const char* question :
         {"moment", "state", "calls", "console", "bus", "functions", "origins"}) {
      ask(question, {{"at", at}});
    }
    ask("code", {{"at", at}, {"before", "4"}, {"after", "4"}});
    ask("setter", {{"at", at}, {"register", "ecx"}});
    ask("access", {{"at", at}, {"address", "600"}});
    ask("move", {{"at", at}, {"how", "step"}});
  }
  ask("listing", {{"at", "0"}, {"address", "7c00"}});
  ask("memory", {{"at", "0"}, {"address", "7c00"}});
  ask("nth", {{"function", "7c0f"}, {"n", "3"}});
  ask("nth", {{"function", "7c0f"}, {"n", "99"}});
  ask("find", {{"text", "x"}, {"at", "0"}});
  Words common = accented(in_all_);
  for (const auto& [question, keys] : keys_) {
    for (const std::string& key : keys) {
      EXPECT_TRUE(documented_[question].answer.contains(key) || common.contains(key))
          << question << " answers with '" << key << "'";
    }
  }
}

TEST_F(InterfaceDocument, LeavesOutNoParameterThatIsRefused) {
  EXPECT_THROW(ask("state", {{"at", "1"}, {"adress", "5"}}), std::exception);
  EXPECT_THROW(ask("run", {{"at", "1"}}), std::exception);
}

}  // namespace
}  // namespace citcat::view
