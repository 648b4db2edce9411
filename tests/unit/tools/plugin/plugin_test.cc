// Tools of shared objects, as somebody would run them: their figures are those of the program's own
// tools, and whatever one does in a process of its own, the others' results are the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden/process.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kPluginCapture = CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst";
constexpr const char* kPluginValues = CITCAT_SOURCE_DIR "/samples/linux/start.side.csv";
constexpr int kUsage = 2, kSystem = 4;

class Plugins : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProcessResult import = run_citcat(
        {"import", kPluginCapture, "--internal", kPluginValues, "-o", "linux.citcat", "-q"},
        folder_->path());
    ASSERT_EQ(import.exit_code, 0) << import.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static ProcessResult analyze(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"analyze", "linux.citcat", "--json"});
    return run_citcat(arguments, folder_->path());
  }
  static Json good(const std::vector<std::string>& arguments) {
    const ProcessResult r = analyze(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return Json::parse(r.out).at("tools");
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

std::string bad(const std::string& how) { return std::string(CITCAT_PLUGIN_BAD) + ":how=" + how; }

/// Pairs of a mix.
Json pairs(const Json& mix) {
  Json all = Json::array();
  for (const Json& row : mix) all.push_back({row.at("mnemonic"), row.at("count")});
  return all;
}

void expect_same_mix(const Json& tools) {
  const Json &mix = tools.at("mix"), &count = tools.at("count");
  EXPECT_GT(count.at("instructions"), 1000);
  for (const char* const key : {"instructions", "executions", "iterations"}) {
    EXPECT_EQ(mix.at(key), count.at(key)) << key;
  }
  EXPECT_EQ(pairs(mix.at("mix")), pairs(count.at("mix")));
}

TEST_F(Plugins, CountAsTheToolThatCounts) {
  expect_same_mix(good({"--tool", CITCAT_PLUGIN_MIX, "--tool", "count"}));
  expect_same_mix(good({"--tool", CITCAT_PLUGIN_MIX, "--tool", "count", "--isolate"}));
  // With what has it run by instructions, and of a part of the run.
  expect_same_mix(good({"--tool", CITCAT_PLUGIN_MIX, "--tool", "count", "--tool",
                        "cache:model=pentium", "--from", "777", "--to", "90001"}));
}

TEST_F(Plugins, CountEachGroupAsTheToolThatCounts) {
  for (const char* const isolate : {"--from-start", "--isolate"}) {
    const ProcessResult r =
        analyze({"--tool", CITCAT_PLUGIN_MIX, "--tool", "count", "--by", "level", isolate});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const Json groups = Json::parse(r.out).at("groups");
    ASSERT_GE(groups.size(), 2u);
    for (const Json& group : groups) {
      EXPECT_EQ(pairs(group.at("tools").at("mix").at("mix")),
                pairs(group.at("tools").at("count").at("mix")));
    }
  }
}

// The processor's cache is off (CR0.CD) before the first instruction: the model is held to from
// behind it.
TEST_F(Plugins, SeeTheReferencesThatTheModelOfACacheSees) {
  for (const char* const isolate : {"--from-start", "--isolate"}) {
    const Json tools = good({"--tool", CITCAT_PLUGIN_CACHE, "--tool", "cache:ways=1,split,allocate",
                             "--from", "1000", isolate});
    const Json &mine = tools.at("direct_mapped"), &cache = tools.at("cache");
    for (const char* const side : {"code", "data"}) {
      for (const char* const key : {"references", "fills"}) {
        EXPECT_GT(cache.at(side).at(key), 1000);
        EXPECT_EQ(mine.at(side).at(key), cache.at(side).at(key)) << side << " " << key;
      }
    }
  }
}

TEST_F(Plugins, SayWhoWroteAnAddressLast) {
  // What `watch` lists, by physical address.
  const Json tools = good({"--tool", "watch:at=1c8bba4,physical", "--tool",
                           std::string(CITCAT_PLUGIN_LAST_WRITE) + ":address=0x1c8bba4"});
  Json writes = Json::array();
  for (const Json& row : tools.at("watch").at("list")) {
    if (row.at("direction") == "write") writes.push_back(row.at("position"));
  }
  const Json& last = tools.at("last_write");
  ASSERT_GT(writes.size(), 0u);
  EXPECT_EQ(last.at("writes"), writes.size());
  ASSERT_GT(last.at("last").size(), 0u);
  const std::uint64_t instruction = last.at("last").front().at("instruction");
  EXPECT_EQ(std::to_string(instruction), writes.back());
}

TEST_F(Plugins, ArePutTogetherOfParts) {
  const ProcessResult whole = analyze({"--tool", CITCAT_PLUGIN_MIX});
  ASSERT_EQ(
      run_shell("cp linux.citcat parts.citcat && $CITCAT checkpoint parts.citcat --every 20000",
                folder_->path())
          .exit_code,
      0);
  for (const std::string isolate : {"", "--isolate"}) {
    const ProcessResult jobs = run_shell(
        "$CITCAT analyze parts.citcat --json --jobs 3 --tool " CITCAT_PLUGIN_MIX " " + isolate,
        folder_->path());
    EXPECT_EQ(jobs.exit_code, 0);
    EXPECT_EQ(jobs.out, whole.out) << jobs.err;
    EXPECT_EQ(jobs.err, "");
    const ProcessResult merged = run_shell(
        "for k in 1 2 3; do $CITCAT analyze parts.citcat --shard $k/3 -o share "
        "--tool " CITCAT_PLUGIN_MIX "; done; $CITCAT merge share*3* --json --plugins " +
            isolate + "; rm share*",
        folder_->path());
    EXPECT_EQ(merged.out, whole.out) << merged.err;
  }
}

TEST_F(Plugins, AreNotLoadedBecauseAShareNamesThem) {
  const ProcessResult r =
      run_shell("$CITCAT analyze linux.citcat --shard 1/1 -o alone --tool " CITCAT_PLUGIN_MIX
                "; $CITCAT merge alone*",
                folder_->path());
  EXPECT_EQ(r.exit_code, kUsage);
  EXPECT_THAT(r.err, HasSubstr("--plugins loads it"));
}

TEST_F(Plugins, OfAnotherVersionAreRefusedByName) {
  for (const char* const isolate : {"--from-start", "--isolate"}) {
    const ProcessResult r = analyze({"--tool", CITCAT_PLUGIN_VERSION, isolate});
    EXPECT_EQ(r.exit_code, kUsage);
    EXPECT_THAT(r.err, HasSubstr(CITCAT_PLUGIN_VERSION));
    EXPECT_THAT(r.err,
                HasSubstr("expected a tool of version 1 of citcat_tool.h, found one of version 2"));
    EXPECT_EQ(r.out, "");
  }
}

TEST_F(Plugins, ThatAreNoneAreRefused) {
  write_file(folder_->path() / "text.so", "not a shared object");
  for (const char* const isolate : {"--from-start", "--isolate"}) {
    EXPECT_THAT(analyze({"--tool", "text.so", isolate}).err,
                HasSubstr("text.so:0: expected a shared object, found"));
    EXPECT_THAT(analyze({"--tool", "./absent.so", isolate}).err,
                HasSubstr("absent.so: cannot open"));
    const ProcessResult option = analyze({"--tool", bad("none") + ",where=x", isolate});
    EXPECT_EQ(option.exit_code, kUsage);
    EXPECT_THAT(option.err, HasSubstr("has no option where (it has after, how;"));
    EXPECT_THAT(analyze({"--tool", bad("kindly"), isolate}).err,
                HasSubstr("expected how=wild, exit"));
  }
}

TEST_F(Plugins, DescribeThemselves) {
  for (const char* const isolate : {"--quiet", "--isolate"}) {
    const ProcessResult r =
        run_citcat({"analyze", "--tool", std::string(CITCAT_PLUGIN_BAD) + ":help", isolate});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("bad: Misbehave"));
    EXPECT_THAT(r.out, HasSubstr("  after=N  executions\n"));
  }
}

/// How a tool fails in a process of its own, and what is said of it.
struct Failure {
  const char* how;
  const char* message;
};

class IsolatedPlugins : public Plugins, public ::testing::WithParamInterface<Failure> {};

TEST_P(IsolatedPlugins, FailAlone) {
  ::setenv("ASAN_OPTIONS", "handle_segv=0", 1);  // a sanitizer would make an exit of the signal
  const Json alone = good({"--tool", "count", "--tool", "cache:model=pentium"});
  const ProcessResult r =
      analyze({"--tool", "count", "--tool", bad(GetParam().how), "--tool", "cache:model=pentium",
               "--tool", CITCAT_PLUGIN_MIX, "--isolate", "--isolate-limit", "2"});
  EXPECT_EQ(r.exit_code, kSystem);
  EXPECT_THAT(r.err, HasSubstr(std::string("--tool ") + CITCAT_PLUGIN_BAD));
  EXPECT_THAT(r.err, HasSubstr(GetParam().message));
  const Json tools = Json::parse(r.out).at("tools");
  EXPECT_EQ(tools.at("count"), alone.at("count"));
  EXPECT_EQ(tools.at("cache"), alone.at("cache"));
  expect_same_mix(tools);
  EXPECT_THAT(tools.at("bad").at("error").get<std::string>(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(All, IsolatedPlugins,
                         ::testing::Values(Failure{"wild", "was ended by signal 11"},
                                           Failure{"exit", "called exit(0)"},
                                           Failure{"loop", "has not answered for 2 s"},
                                           Failure{"report", "end_table() without table()"},
                                           Failure{"close", "was ended by signal 6"}),
                         [](const auto& test) { return std::string(test.param.how); });

/// A process that the tool began, in the file "left", does not outlive it.
void expect_nothing_left(const std::filesystem::path& folder) {
  std::ifstream left(folder / "left");
  pid_t process = 0;
  ASSERT_TRUE(left >> process);
  EXPECT_EQ(::kill(process, 0), -1) << process << " is there still";
  std::filesystem::remove(folder / "left");
}

TEST_F(Plugins, ThatAreIsolatedLeaveNoProcessBehind) {
  for (const char* const how : {"child", "hide"}) {
    const Json tools = good({"--tool", bad(how), "--isolate"});
    EXPECT_GT(tools.at("bad").at("executions"), 1000) << how;
    expect_nothing_left(folder_->path());
  }
  const ProcessResult hung =
      analyze({"--tool", bad("orphan"), "--isolate", "--isolate-limit", "1"});
  EXPECT_EQ(hung.exit_code, kSystem);
  expect_nothing_left(folder_->path());
}

/// However the host ends.
TEST_F(Plugins, ThatAreIsolatedEndWithAHostThatIsKilled) {
  const ProcessResult r = run_shell(
      "$CITCAT analyze linux.citcat --tool " + bad("orphan") + R"( --isolate >/dev/null 2>&1 &
host=$!
until [ -s left ]; do sleep 0.05; done
ps -o pid= --ppid $host
kill -9 $host; wait $host 2>/dev/null
for try in $(seq 100); do kill -0 $(cat left) 2>/dev/null || break; sleep 0.1; done
sleep 0.3
)",
      folder_->path());
  expect_nothing_left(folder_->path());
  std::istringstream processes(r.out);
  pid_t guard = 0;
  ASSERT_TRUE(processes >> guard) << r.out << r.err;
  // It is gone, or waits for whoever takes up processes without a parent.
  std::ifstream stat("/proc/" + std::to_string(guard) + "/stat");
  std::string number, name, state = "Z";
  stat >> number >> name >> state;
  EXPECT_EQ(state, "Z");
}

TEST_F(Plugins, ThatAreIsolatedReachNoOtherProcess) {
  const Json tools = good({"--tool", bad("reach"), "--tool", "count", "--isolate"});
  EXPECT_GT(tools.at("bad").at("executions"), 1000);
  std::ifstream reached(folder_->path() / "reached");
  const std::string ways{std::istreambuf_iterator<char>(reached), {}};
  EXPECT_EQ(ways, "tried\n");
}

TEST_F(Plugins, WhoseReportMakesNoSenseFailAloneWithoutIsolationToo) {
  const ProcessResult r = analyze({"--tool", "count", "--tool", bad("report")});
  EXPECT_EQ(r.exit_code, kSystem);
  EXPECT_THAT(r.err, HasSubstr("end_table() without table()"));
  EXPECT_EQ(Json::parse(r.out).at("tools").at("count"), good({"--tool", "count"}).at("count"));
}

}  // namespace
}  // namespace citcat::testing
