// Help, and what is said where a command line makes no sense.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class HelpTest : public CitcatTest {
 protected:
  std::string refused(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.out, IsEmpty());
    return result.err;
  }
};

TEST_F(HelpTest, HelpCommandPrintsWhatTheOptionDoes) {
  EXPECT_EQ(good({"help"}), good({"--help"}));
  for (const Command* command : command_list()) {
    EXPECT_EQ(good({"help", command->name}), good({command->name, "--help"}));
  }
  EXPECT_EQ(good({"help", "help"}), good({"help", "--help"}));
}

TEST_F(HelpTest, HelpAsJsonHasEveryCommandAndEveryOption) {
  const Json all = Json::parse(good({"help", "--json"}));
  EXPECT_EQ(all.at("commands").size(), command_list().size() + 1);
  for (const Json& row : all.at("commands")) {
    const std::string name = row.at("command");
    const Json one = Json::parse(good({"help", name, "--json"}));
    EXPECT_EQ(one.at("summary"), row.at("summary"));
    const std::string text = good({"help", name});
    for (const Json& option : one.at("options")) {
      for (const std::string spelling : option.at("names")) EXPECT_THAT(text, HasSubstr(spelling));
      EXPECT_FALSE(option.at("text").get<std::string>().empty()) << name;
    }
    EXPECT_THAT(text, HasSubstr(one.at("example").get<std::string>().substr(0, 20)));
  }
  const Json record = Json::parse(good({"help", "record", "--json"}));
  const auto cache = std::find_if(
      record.at("options").begin(), record.at("options").end(),
      [](const Json& option) { return option.at("names") == Json::array({"--cache"}); });
  ASSERT_NE(cache, record.at("options").end());
  EXPECT_EQ(cache->at("choices"), Json::array({"none", "i486", "write-back", "pentium"}));
}

TEST_F(HelpTest, NamesTheCommandThatWasMeant) {
  EXPECT_THAT(refused({"improt", "boot.sr"}),
              HasSubstr("no command improt (did you mean import?)"));
  EXPECT_THAT(refused({"help", "verfy"}), HasSubstr("no command verfy (did you mean verify?)"));
  EXPECT_THAT(refused({"frobnicate"}), Not(HasSubstr("did you mean")));
}

TEST_F(HelpTest, NamesTheOptionThatWasMeantWhateverElseIsMissing) {
  EXPECT_THAT(refused({"convert", "boot.sr", "--ot", "byu"}),
              HasSubstr("convert has no option --ot (did you mean --to?)"));
  EXPECT_THAT(refused({"import", "boot.sr", "--ouput=b.citcat"}),
              HasSubstr("import has no option --ouput (did you mean --output?)"));
  EXPECT_THAT(refused({"--versoin"}), HasSubstr("did you mean --version?"));
  EXPECT_THAT(refused({"record", "qemu-system-i386", "-fda", "a.img"}),
              HasSubstr("no option -fda; if it is one of qemu-system-i386, write -- before that"));
  EXPECT_THAT(refused({"verify", "r.citcat", "--no-such-option"}), Not(HasSubstr("did you mean")));
}

TEST_F(HelpTest, SaysWhatAValueShouldBe) {
  EXPECT_THAT(refused({"verify", "r.citcat", "--jobs", "abc"}),
              HasSubstr("--jobs: expected a number, found abc"));
  EXPECT_THAT(refused({"verify", "r.citcat", "--jobs", "65"}),
              HasSubstr("--jobs: expected a number from 1 to 64, found 65"));
  EXPECT_THAT(refused({"verify", "r.citcat", "--processor", "-1"}),
              HasSubstr("--processor: expected a number, found -1"));
  EXPECT_THAT(refused({"debug", "r.citcat", "--port", "99999"}),
              HasSubstr("--port: expected a number from 0 to 65535, found 99999"));
  EXPECT_THAT(refused({"checkpoint", "r.citcat", "--every", "0"}),
              HasSubstr("--every: expected a number above 0, found 0"));
  EXPECT_THAT(refused({"check", "r.citcat", "--memory-limit", "much"}),
              HasSubstr("--memory-limit: expected a size such as 64K or 2G, found much"));
  EXPECT_THAT(refused({"verify", "r.citcat", "--engine", "slow"}),
              HasSubstr("--engine: expected fast or unicorn, found slow"));
  EXPECT_THAT(refused({"import", "c.bin", "--start", "boot"}),
              HasSubstr("--start: expected interrupt:N"));
}

TEST_F(HelpTest, SaysWhichWordDoesNotFit) {
  EXPECT_THAT(refused({"replay", "r.citcat", "-o"}),
              HasSubstr("--output: expected a value after it, found none"));
  EXPECT_THAT(refused({"replay", "r.citcat", "-o", "a.kt", "-o", "b.kt"}),
              HasSubstr("--output is given more than once"));
  EXPECT_THAT(refused({"record", "--cache", "l2", "--", "true"}),
              HasSubstr("--cache: expected none, i486, write-back or pentium, found l2"));
  EXPECT_THAT(refused({}), HasSubstr("citcat help lists them"));
}

TEST_F(HelpTest, NoTypesOfTheLanguageAreShown) {
  for (const Command* command : command_list()) {
    const std::string text = good({"help", command->name});
    for (const char* const word : {" TEXT", "UINT", " INT", "FLOAT", " REQUIRED"}) {
      EXPECT_THAT(text, Not(HasSubstr(word))) << command->name;
    }
  }
}

TEST_F(HelpTest, NamesTheToolThatWasMeant) {
  import_sample("r.citcat");
  EXPECT_THAT(refused({"analyze", "r.citcat", "--tool", "cach"}),
              HasSubstr("there is no tool cach (did you mean cache?)"));
  EXPECT_THAT(refused({"replay", "r.citcat", "-o", "a.din", "--format", "din:foo=1"}),
              HasSubstr("--format din:foo=1: din has no option foo"));
  EXPECT_THAT(good({"replay", "r.citcat", "--format", "din:help"}), HasSubstr("to=FILE"));
  EXPECT_THAT(refused({"analyze", "r.citcat", "--tool", "cache", "--sample", "often"}),
              HasSubstr("--sample: expected every"));
}

TEST_F(HelpTest, NamesTheFileThatIsMissing) {
  for (const char* const command : {"import", "slim", "report"}) {
    const ProcessResult result = run({command, "nowhere.bin"});
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.err, HasSubstr("nowhere.bin: cannot open: No such file"));
  }
}

TEST_F(HelpTest, SaysWhenAnotherKindOfFileIsGiven) {
  import_sample("r.citcat");
  write_file(file("empty"), "");
  EXPECT_THAT(run({"import", "r.citcat", "-o", "x.citcat"}).err,
              HasSubstr("expected a capture, found a citcat recording"));
  EXPECT_THAT(run({"convert", "r.citcat", "--to", "vcd", "-o", "x"}).err,
              HasSubstr("expected a capture, found a citcat recording"));
  EXPECT_THAT(run({"verify", "empty"}).err,
              HasSubstr("expected a citcat recording, found an empty file"));
  EXPECT_THAT(run({"verify", CITCAT_SOURCE_DIR "/README.md"}).err,
              HasSubstr("expected a citcat recording, found another kind of file"));
  EXPECT_EQ(run({"verify", "r.citcat", "--memory", "empty"}).exit_code, 3);
}

TEST_F(HelpTest, ARunThatEndsBeforeItIsComparedIsEqualToNone) {
  import_sample("r.citcat");
  EXPECT_THAT(refused({"diff", "r.citcat", "r.citcat", "--from-a", "9999"}),
              HasSubstr("--from-a 9999: r.citcat ends after"));
}

TEST_F(HelpTest, ATriggerThatThereIsNoneOfIsAUsageError) {
  for (const char* const option : {"--start", "--stop"}) {
    EXPECT_THAT(refused({"record", "-o", "b.bin", option, "foo", "--", "true"}),
                HasSubstr(std::string(option) + ": expected driver, reset, address:HEX"));
  }
  EXPECT_THAT(refused({"record", "-o", "b.bin", "--start", "port:10000", "--", "true"}),
              HasSubstr("found port:10000"));
}

TEST_F(HelpTest, FormatsAreListedUnderTheNamesThatImportAndConvertTake) {
  const Json formats = Json::parse(good({"import", "--list-formats", "--json"})).at("formats");
  std::vector<std::string> written;
  for (const Json& row : formats) {
    EXPECT_THAT(good({"import", "--list-formats"}), HasSubstr(row.at("format").get<std::string>()));
    if (row.at("written")) written.push_back(row.at("format"));
  }
  const Json help = Json::parse(good({"help", "convert", "--json"}));
  for (const Json& option : help.at("options")) {
    if (option.at("names") != Json::array({"--to"})) continue;
    auto targets = option.at("choices").get<std::vector<std::string>>();
    std::erase(targets, "kt");  // of traces, which are no captures
    EXPECT_THAT(written, ::testing::UnorderedElementsAreArray(targets));
  }
  EXPECT_THAT(written, Contains("record-csv"));
}

TEST_F(HelpTest, ConvertWritesWhatImportFindsToBeThatFormat) {
  const std::string sample = CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr";
  const Json formats = Json::parse(good({"import", "--list-formats", "--json"})).at("formats");
  for (const Json& row : formats) {
    if (!row.at("written")) continue;
    const std::string name = row.at("format");
    good({"convert", sample, "--cpu", "8088", "--to", name, "-o", "c." + name, "-q"});
    const Json info = Json::parse(good({"info", "c." + name, "--json"}));
    EXPECT_EQ(info.at("format"), name);
  }
}

TEST_F(HelpTest, ChannelsAreExplainedAsJson) {
  const std::string sample = CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr";
  const Json json = Json::parse(good({"import", "--explain-channels", "--json", sample}));
  EXPECT_EQ(json.at("bus").at("bus"), "8088-max");
  EXPECT_EQ(json.at("address_mask"), "0x7ffff");
  EXPECT_THAT(json.at("unused").get<std::vector<std::string>>(), Contains("VS"));
  const std::string text = good({"import", "--explain-channels", sample});
  for (const Json& pin : json.at("bus").at("pins")) {
    EXPECT_THAT(text, HasSubstr(pin.at("pin").get<std::string>()));
  }
}

TEST_F(HelpTest, JsonOfDumpAndCatIsTheirJsonFormat) {
  import_sample("r.citcat");
  EXPECT_EQ(good({"dump", "r.citcat", "--json"}), good({"dump", "r.citcat", "--format", "json"}));
  EXPECT_EQ(good({"cat", "r.citcat", "--to", "9", "--json"}),
            good({"cat", "r.citcat", "--to", "9", "--format", "json"}));
  EXPECT_THAT(refused({"dump", "r.citcat", "--json", "--format", "csv"}), HasSubstr("--json"));
}

}  // namespace
}  // namespace citcat::testing
