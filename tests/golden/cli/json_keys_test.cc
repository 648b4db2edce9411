// Whatever a command prints with --json is JSON, and docs/cli.md (or the page of the analysis) has
// each of its keys.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;

const std::string kSampleFolder = CITCAT_SOURCE_DIR "/samples/ibm5150/";

/// The section "## NAME" of docs/cli.md.
std::string section_of(const std::string& command) {
  const std::string page = read_file(CITCAT_SOURCE_DIR "/docs/cli.md");
  const std::size_t begin = page.find("\n## " + command + "\n");
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

/// Keys of objects whose keys are what the capture has, or options of `import`, not words of this
/// output: registers.
bool is_of_data(const std::string& key) { return key == "registers" || key == "options"; }

void collect(const Json& value, std::set<std::string>& keys) {
  if (value.is_array()) {
    for (const Json& item : value) collect(item, keys);
  } else if (value.is_object()) {
    for (const auto& item : value.items()) {
      keys.insert(item.key());
      if (!is_of_data(item.key())) collect(item.value(), keys);
    }
  }
}

class JsonKeys : public CitcatTest {
 protected:
  /// Runs a command with --json, one object or one a line, and looks its keys up. `pages` are
  /// further texts that may have them.
  void check(std::vector<std::string> arguments, const std::string& pages = "") const {
    const std::string text = section_of(arguments[0]) + pages;
    arguments.push_back("--json");
    std::istringstream lines(good(arguments));
    std::set<std::string> keys;
    for (std::string line; std::getline(lines, line);) {
      ASSERT_TRUE(Json::accept(line)) << arguments[0] << ": " << line;
      collect(Json::parse(line), keys);
    }
    EXPECT_FALSE(keys.empty()) << arguments[0];
    for (const std::string& key : keys) {
      const bool written = text.find('"' + key + '"') != std::string::npos ||
                           text.find('`' + key + '`') != std::string::npos;
      EXPECT_TRUE(written) << arguments[0] << " prints \"" << key
                           << "\", which its documentation does not have";
    }
  }
};

TEST_F(JsonKeys, OfEveryCommandAreInItsDocumentation) {
  const std::string capture = kSampleFolder + "area5150.sr", unnamed = kSampleFolder + "unnamed.sr";
  check({"import", capture, "--cpu", "8088", "--initial-state", kSampleFolder + "state.json",
         "--start", "interrupt:0", "-o", "r.citcat"});
  check({"import", "--list-formats"});
  check({"import", "--explain-channels", capture});
  check({"import", "--explain-channels", unnamed});
  check({"import", "--match-channels", "map.json", unnamed});
  check({"replay", "r.citcat", "-o", "r.kt"});
  check({"verify", "r.citcat"});
  check({"verify", "r.citcat", "--account"});
  for (const std::string& file : {std::string("r.citcat"), std::string("r.kt"), capture})
    check({"info", file});
  check({"lint", capture});
  const std::string linux = CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst";
  check({"lint", linux});
  good({"import", linux, "-o", "l.citcat", "-q"});
  check({"info", "l.citcat", "--trace"});
  check({"analyze", "--list-tools"});
  check({"convert", capture, "--to", "csv", "-o", "c.csv"});
  check({"check", "r.citcat"});
  check({"repair", "r.citcat", "-o", "repaired.citcat"});
  check({"slim", "r.citcat", "-o", "slim.citcat"});
  check({"checkpoint", "r.citcat"});
  check({"explain", "r.citcat"});
  check({"place", "r.citcat"});
  // For a trace they are those of `cat`.
  check({"dump", "r.kt", "--to", "5"}, section_of("cat"));
  check({"cat", "r.kt"});
  check({"help"});
  check({"help", "import"});
}

/// All tools, those that need options with some.
std::vector<std::string> every_tool(const Json& list) {
  std::vector<std::string> tools;
  for (const Json& tool : list) {
    std::string name = tool.at("name");
    if (name == "watch") name += ":at=0-ffff,most=5,reads";
    if (name == "mdl") name += ":metric=cpu@/Code";
    tools.push_back(name);
  }
  return tools;
}

TEST_F(JsonKeys, OfAnalysesAreInTheirPages) {
  import_sample("r.citcat");
  good({"import", CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst", "-o", "l.citcat", "-q"});
  const std::string readme = read_file(CITCAT_SOURCE_DIR "/docs/tools/README.md");
  for (const char* recording : {"r.citcat", "l.citcat"}) {
    std::vector<std::string> arguments = {"analyze", recording, "--to", "60000", "--json"};
    for (const std::string& tool :
         every_tool(Json::parse(good({"analyze", "--list-tools", "--json"}))))
      arguments.insert(arguments.end(), {"--tool", tool});
    const Json run = Json::parse(good(arguments));
    EXPECT_GT(run.at("tools").size(), 20u);
    for (const auto& tool : run.at("tools").items()) {
      const std::string page =
          readme + read_file(CITCAT_SOURCE_DIR "/docs/tools/" + tool.key() + ".md");
      std::set<std::string> keys;
      collect(tool.value(), keys);
      for (const std::string& key : keys)
        EXPECT_TRUE(page.find('"' + key + '"') != std::string::npos ||
                    page.find('`' + key + '`') != std::string::npos)
            << tool.key() << " prints \"" << key << "\", which its page does not have";
    }
    for (const char* key : {"instructions", "from", "to", "end", "divergence", "tools"})
      EXPECT_TRUE(run.contains(key)) << key;
    EXPECT_EQ(run.size(), 6u);
  }
  for (const std::string name : {"count", "bpred", "cache"})
    check({name, "r.citcat"}, readme + section_of("analyze") + '`' + name + '`' +
                                  read_file(CITCAT_SOURCE_DIR "/docs/tools/" + name + ".md"));
}

}  // namespace
}  // namespace citcat::testing
