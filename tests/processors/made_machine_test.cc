// The way of several processors from a capture to a verdict, by the commands that one types.

#include "processors/made_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "golden/process.h"
#include "golden/table_copies.h"

namespace citcat::test {
namespace {

using Json = nlohmann::json;
using citcat::testing::ProcessResult;
using citcat::testing::read_file;
using citcat::testing::run_citcat;
using citcat::testing::write_file;
using ::testing::HasSubstr;
using ::testing::Not;

class MadeMachines : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }
  std::string good(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err << result.out;
    return result.out;
  }
  void store(const MadeMachine& made, bool native = false) const {
    write_file(path("bus.bin"), native ? made.native() : made.headerless());
    for (int p = 0; p < 2; ++p)
      write_file(path("side." + std::to_string(p) + ".csv"), made.internal[p]);
  }
  /// Nothing of what import says.
  void import() const {
    good({"import", "bus.bin", "--cpu", "p6", "--internal", "0=side.0.csv", "--internal",
          "1=side.1.csv", "-o", "two.citcat", "-q"});
  }
  Json verdict() const {
    const ProcessResult result = run({"verify", "two.citcat", "--json"});
    EXPECT_LE(result.exit_code, 1) << result.err;
    return Json::parse(result.out);
  }

 private:
  citcat::testing::TemporaryFolder folder_;
};

TEST_F(MadeMachines, MatchHoweverTheyTakeTurns) {
  const std::vector<std::vector<unsigned>> all{{1}, {7}, {2, 5}, {30, 1}, {1, 30}, {3, 1, 4, 1, 5}};
  for (const std::vector<unsigned>& turns : all) {
    const MadeMachine made = made_machine(turns);
    for (const bool native : {false, true}) {
      SCOPED_TRACE(turns.size());
      store(made, native);
      import();
      const Json json = verdict();
      EXPECT_EQ(json.at("verdict"), "match") << json.dump(1);
      EXPECT_EQ(json.at("shared_bus").at("from_nobody"), 0);
      for (int p = 0; p < 2; ++p) {
        EXPECT_EQ(json.at("processors").at(p).at("processor"), p);
        EXPECT_EQ(json.at("processors").at(p).at("verdict"), "match");
        EXPECT_EQ(json.at("processors").at(p).at("instructions"), made.instructions[p]);
      }
      EXPECT_EQ(run({"check", "two.citcat"}).exit_code, 0);
    }
  }
}

TEST_F(MadeMachines, OneIsStartedOnceMore) {
  const MadeMachine made = made_machine({2, 3}, true);
  store(made);
  import();
  const Json json = verdict();
  EXPECT_EQ(json.at("verdict"), "match") << json.dump(1);
  EXPECT_EQ(json.at("processors").at(1).at("instructions"), made.instructions[1]);
  EXPECT_THAT(good({"dump", "two.citcat", "--processor", "1"}), HasSubstr("startup"));
  const std::string first = good({"cat", "two.citcat", "--format", "json", "--to", "1:1"});
  const std::string lines = good({"cat", "two.citcat@1", "--format", "json"});
  const Json start = Json::parse(first);
  std::istringstream in(lines);
  unsigned starts = 0;
  for (std::string line; std::getline(in, line);) {
    const Json record = Json::parse(line);
    if (record.value("eip", "") == start.at("eip") && record.value("text", "") == start.at("text"))
      ++starts;
  }
  EXPECT_GE(starts, 2u);
}

/// A record between others says where in memory those behind it are.
TEST_F(MadeMachines, AreReadWithTheirMemoryBeyond4GiB) {
  constexpr std::uint8_t kHigh = 22;
  MadeMachine made = made_machine({2, 5});
  store(made);
  const auto shown = [&](const std::string& processor) {
    return good({"dump", "bus.bin", "--processor", processor});
  };
  const std::string below[] = {shown("0"), shown("1")};
  std::vector<MadeRecord> records;
  for (const MadeRecord& r : made.records) {
    const bool moves = r.address >= 0x500 && r.address < 0x50c;
    MadeRecord high;
    high.type = kHigh;
    high.count = ~std::uint64_t{0};
    high.address = 0x12345;
    if (moves) records.push_back(high);
    records.push_back(r);
    high.address = 0;
    if (moves) records.push_back(high);
  }
  made.records = records;
  for (const bool native : {false, true}) {
    store(made, native);
    for (const std::string processor : {"0", "1"}) {
      std::string far = good({"dump", "bus.bin", "--processor", processor});
      EXPECT_NE(far.find("1234500000500"), std::string::npos) << far;
      for (std::size_t at = 0; (at = far.find("123450000050", at)) != std::string::npos;)
        far.replace(at, 12, "0000050");
      EXPECT_EQ(far, below[processor == "0" ? 0 : 1]);
    }
  }
}

TEST_F(MadeMachines, ProcessesSideBySideSayTheSame) {
  store(made_machine({2, 3}));
  import();
  EXPECT_EQ(good({"verify", "two.citcat", "--json"}),
            good({"verify", "two.citcat", "--json", "--jobs", "2"}));
}

/// Processor 1 waits for what processor 0 writes, and has seen what was there before, or not.
TEST_F(MadeMachines, SayWhichProcessorAValueComesFrom) {
  for (const std::vector<unsigned>& turns : {std::vector<unsigned>{1, 7}, {30, 1}, {2, 5}}) {
    store(made_machine(turns));
    import();
    const Json slice = Json::parse(
        good({"why", "two.citcat@1", "--at", "end", "--memory", "504", "--physical", "--json"}));
    unsigned written = 0;
    for (const Json& input : slice.at("inputs")) {
      if (!input.contains("writer")) continue;
      ++written;
      EXPECT_EQ(input.at("kind"), "processor");
      EXPECT_EQ(input.at("address"), "0x00000500");
      EXPECT_EQ(input.at("writer").at("processor"), 0);
      EXPECT_EQ(input.at("writer").at("position"), "1") << "mov [500h], al";
    }
    EXPECT_EQ(written, 1u) << slice.dump(1);
    EXPECT_THAT(good({"why", "two.citcat@1", "--at", "end", "--memory", "504", "--physical"}),
                HasSubstr("written by processor 0 at 0:1, its transaction"));
  }
}

/// Processor 0 stores the 0 that processor 1 has seen there before: no external write says so.
TEST_F(MadeMachines, SayWhichProcessorStoredTheSameValueAgain) {
  for (const std::vector<unsigned>& turns : {std::vector<unsigned>{30, 1}, {9, 1}}) {
    const MadeMachine made = made_machine(turns, false, true);
    std::uint64_t stored_at = 0, reads = 0;
    for (const MadeRecord& r : made.records) {
      constexpr std::uint8_t kRead = 2, kWrite = 3;
      if (r.address != 0x508 || r.type == 1) continue;
      if (r.type == kWrite) stored_at = r.count;
      if (r.type == kRead) {
        ++reads;
        EXPECT_EQ(r.data[0], 0);
        EXPECT_EQ(stored_at != 0, reads == 2);
      }
    }
    ASSERT_EQ(reads, 2u);
    store(made);
    import();
    const Json slice = Json::parse(
        good({"why", "two.citcat@1", "--at", "end", "--register", "al", "--json", "--values"}));
    unsigned written = 0;
    for (const Json& input : slice.at("inputs")) {
      EXPECT_NE(input.at("kind"), "image") << slice.dump(1);
      if (!input.contains("writer")) continue;
      ++written;
      EXPECT_EQ(input.at("kind"), "processor");
      EXPECT_EQ(input.at("address"), "0x00000508");
      EXPECT_EQ(input.at("writer").at("processor"), 0);
      EXPECT_EQ(input.at("writer").at("position"), std::to_string(stored_at));
      EXPECT_TRUE(input.at("writer").at("transaction").is_number());
    }
    EXPECT_EQ(written, 1u) << slice.dump(1);
    // What was there before the store is the image.
    const Json before = Json::parse(
        good({"why", "two.citcat@1", "--at", "1", "--register", "al", "--json", "--values"}));
    EXPECT_EQ(before.at("inputs").at(1).at("kind"), "image") << before.dump(1);
  }
}

TEST_F(MadeMachines, EachIsTracedByItsNumber) {
  store(made_machine({2, 3}));
  import();
  const std::string lines =
      good({"cat", "two.citcat", "--processor", "1", "--format", "json", "--to", "1:2"});
  std::istringstream in(lines);
  std::vector<Json> all;
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].at("number"), 0);
  EXPECT_EQ(all[0].at("eip"), "00002000");
  EXPECT_EQ(all[0].at("text"), "mov al, [0x0500]");
  EXPECT_EQ(lines, good({"cat", "two.citcat", "--format", "json", "--to", "1:2"}));
  EXPECT_EQ(lines, good({"cat", "two.citcat@1", "--format", "json", "--to", "2"}));
  good({"replay", "two.citcat", "--processor", "1", "-o", "p1.kt", "-q"});
  EXPECT_EQ(read_file(path("p1.kt")), good({"cat", "two.citcat@1"}));
}

TEST_F(MadeMachines, AreAskedInSqlProcessorByProcessor) {
  store(made_machine({2, 3}));
  import();
  const auto rows = [&](const std::string& name, const std::string& query) {
    return Json::parse(good({"sql", name, query, "--json"}));
  };
  const std::string counts = "select processor, count(*) n from instructions group by 1";
  const Json all = rows("two.citcat", counts);
  ASSERT_EQ(all.size(), 2u);
  for (int p = 0; p < 2; ++p) {
    const std::string name = "two.citcat@" + std::to_string(p);
    EXPECT_EQ(all.at(p).at("processor"), p);
    EXPECT_EQ(rows(name, counts), Json::array({all.at(p)}));
    EXPECT_EQ(rows("two.citcat", "select count(position) n from instructions where processor = " +
                                     std::to_string(p))
                  .at(0)
                  .at("n"),
              all.at(p).at("n"));
    const std::string columns = "select position, address, text, processor from instructions";
    EXPECT_EQ(rows("two.citcat", columns + " where processor = " + std::to_string(p)),
              rows(name, columns));
    EXPECT_EQ(rows("two.citcat",
                   "select distinct processor from refs where processor = " + std::to_string(p)),
              rows(name, "select distinct processor from refs"));
  }
  EXPECT_EQ(rows("two.citcat", "select * from instructions where processor = 2").size(), 0u);
  EXPECT_EQ(rows("two.citcat", "select position from instructions order by position desc limit 1"),
            rows("two.citcat", "select max(position) position from instructions"));
  EXPECT_EQ(rows("two.citcat", "select * from symbols"),
            rows("two.citcat@0", "select * from symbols"));
}

TEST_F(MadeMachines, AnswerInSqlAsCopiesOfTheirTables) {
  store(made_machine({2, 3}));
  import();
  citcat::testing::TableCopies copies(
      [&](const std::string& text) {
        return good({"sql", "two.citcat", text, "--json", "-q"});
      },
      {{"instructions"},
       {"refs"},
       {"events"},
       {"ports"},
       {"external_writes"},
       {"bus"},
       {"blocks"},
       {"registers", {"position = 0", "position = 3"}}});
  copies.expect_same(60, 1);
  copies.expect_same_joins(40, 2);
}

/// Commands that want one processor named, on an archive of several. What every command makes of
/// one is in command_table_test.cc.
const std::map<std::string, std::vector<std::vector<std::string>>> kAskWhichOne{
    {"cat", {{"two.citcat"}}},
    {"compare", {{"two.citcat", "log"}}},
    {"convert",
     {{"bus.bin", "--format", "machine-smp:0", "--to", "vcd", "--replay", "two.citcat", "-o",
       "pins.vcd"}}},
    {"diff", {{"two.citcat", "two.citcat@1"}, {"two.citcat@0", "two.citcat"}}},
    {"dump", {{"two.citcat"}}},
    {"session", {{"two.citcat"}}},
    {"why", {{"two.citcat", "--register", "eax"}}},
};

class CommandOfOne : public MadeMachines {
 protected:
  Json help(const std::string& command = "") const {
    std::vector<std::string> arguments{"help", "--json"};
    if (!command.empty()) arguments.insert(arguments.begin() + 1, command);
    return Json::parse(good(arguments));
  }
  /// By name, whether the command is in this build (CITCAT_PARTS).
  std::map<std::string, bool> commands() const {
    const Json program = help();
    std::map<std::string, bool> all;
    for (const Json& row : program.at("commands"))
      all[row.at("command")] = row.at("summary") != "Not in this build (CITCAT_PARTS)";
    return all;
  }
};

/// No command answers for one of them in silence.
TEST_F(CommandOfOne, AsksWhichOne) {
  store(made_machine({2, 3}));
  import();
  const std::map<std::string, bool> present = commands();
  for (const auto& [name, runs] : kAskWhichOne) {
    if (!present.at(name)) continue;
    for (std::vector<std::string> command : runs) {
      command.insert(command.begin(), name);
      const ProcessResult result = run(command);
      EXPECT_EQ(result.exit_code, 2) << name << result.out;
      EXPECT_EQ(result.out, "") << name;
      EXPECT_THAT(result.err, HasSubstr("two.citcat holds 2 processors: say which one by its name, "
                                        "two.citcat@0 to two.citcat@1"))
          << name;
    }
  }
}

TEST_F(MadeMachines, OnlyOneThatThereIsCanBeNamed) {
  store(made_machine({2, 3}));
  import();
  const ProcessResult none = run({"cat", "two.citcat", "--processor", "2"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("has 2 processors, numbered from 0"));
  const ProcessResult other = run({"cat", "two.citcat", "--processor", "0", "--to", "1:5"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("is a position of processor 1"));
  EXPECT_EQ(good({"cat", "two.citcat@1", "--to", "1:3"}),
            good({"cat", "two.citcat", "--to", "1:3"}));
  const ProcessResult another = run({"cat", "two.citcat@1", "--to", "0:3"});
  EXPECT_EQ(another.exit_code, 2);
  EXPECT_THAT(another.err, HasSubstr("0:3: two.citcat@1 names another processor"));
}

/// What an agent does that is no processor, as a record behind the others.
void add_by_agent(MadeMachine& made, std::uint8_t agent, std::uint8_t type,
                  std::vector<std::uint8_t> data = {}) {
  MadeRecord record;
  record.clock = made.records.back().clock + 1;
  record.type = type;
  record.size = static_cast<std::uint8_t>(data.size());
  std::copy(data.begin(), data.end(), record.data);
  record.place = static_cast<std::uint8_t>(agent << 4);
  made.records.push_back(record);
}

TEST_F(MadeMachines, OnlyAProcessorIsStartedOrMakesALineItsOwn) {
  constexpr std::uint8_t kMadeInvalidation[] = {12, 20};  // headerless, native
  constexpr std::uint8_t kInitRecord = 18, kSipiRecord = 19;
  for (const std::uint8_t agent : {std::uint8_t{14}, std::uint8_t{15}}) {
    for (const bool native : {false, true}) {
      for (const std::uint8_t type :
           {kMadeInvalidation[native ? 1 : 0], kInitRecord, kSipiRecord}) {
        MadeMachine made = made_machine({2, 3});
        add_by_agent(made, agent, type, std::vector<std::uint8_t>(type == kSipiRecord ? 1 : 0));
        store(made, native);
        const ProcessResult result = run({"import", "bus.bin", "--cpu", "p6", "-o", "two.citcat"});
        EXPECT_EQ(result.exit_code, 3) << int{agent} << " " << int{type} << result.err;
        EXPECT_THAT(result.err, HasSubstr("agent: " + std::to_string(agent) +
                                          " is not a processor, and can only write up to 8 bytes"));
      }
    }
  }
}

/// Turns in which processor 1 sees the old value before it sees the new one.
const std::vector<unsigned> kSeesBoth{1, 4};

TEST_F(MadeMachines, AProcessorWithoutADumpIsNamed) {
  MadeMachine made = made_machine({2, 3});
  constexpr std::uint8_t kThird = 2 << 4;
  const std::size_t number = made.records.size() - 3;
  made.records[number].place = kThird;
  store(made);
  const ProcessResult result =
      run({"import", "bus.bin", "--cpu", "p6", "--internal", "none", "-o", "two.citcat", "-q"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("a state dump of processor 2, whose first record is number " +
                                    std::to_string(number)));
}

TEST_F(MadeMachines, ValuesThatAreMissingAreNamed) {
  store(made_machine({2, 3}));
  const auto import_with = [&](std::vector<std::string> internal) {
    std::vector<std::string> arguments{"import", "bus.bin",    "--cpu", "p6",
                                       "-o",     "two.citcat", "-q"};
    for (std::string& its : internal) arguments.insert(arguments.end(), {"--internal", its});
    return run(arguments);
  };
  EXPECT_THAT(import_with({}).err, HasSubstr("of processor 0, 1:"));
  EXPECT_THAT(import_with({"0=side.0.csv"}).err, HasSubstr("of processor 1:"));
  EXPECT_EQ(import_with({"none"}).err, "");
  EXPECT_EQ(import_with({"0=side.0.csv", "1=none"}).err, "");
}

TEST_F(MadeMachines, ANativeCaptureHasCountsAndClocks) {
  const MadeMachine made = made_machine({2, 3});
  store(made);
  for (const std::uint16_t flags : {std::uint16_t{5}, std::uint16_t{6}, std::uint16_t{0}}) {
    write_file(path("bus.bin"), made.native(flags));
    for (const char* const command : {"import", "info", "dump"}) {
      std::vector<std::string> arguments{command, "bus.bin"};
      if (arguments[0] == "import") arguments.insert(arguments.end(), {"-o", "two.citcat"});
      const ProcessResult result = run(arguments);
      EXPECT_EQ(result.exit_code, 3) << command << result.out;
      EXPECT_THAT(result.err, HasSubstr("bus.bin:14: flags: expected counts (1) and clocks (2)"));
      EXPECT_THAT(result.err, HasSubstr("found " + std::to_string(flags)));
    }
  }
}

/// The capture was cut before either of them did anything.
TEST_F(MadeMachines, AProcessorThatShowsNothingHasExecutedNothing) {
  constexpr std::uint8_t kStarts = 19;
  MadeMachine made = made_machine({2, 3});
  const auto first = std::find_if(made.records.begin(), made.records.end(),
                                  [](const MadeRecord& r) { return r.type == kStarts; });
  made.records.erase(first, made.records.end());
  store(made);
  import();
  for (const char* const command : {"info", "verify"}) {
    const Json json = Json::parse(good({command, "two.citcat", "--json"}));
    for (int p = 0; p < 2; ++p) EXPECT_EQ(json.at("processors").at(p).at("instructions"), 0);
  }
}

/// What caches hold at the end is known only if the capture shows who has which line.
TEST_F(MadeMachines, MemoryAtTheEndIsComparedOnlyIfItsOwnersAreKnown) {
  constexpr std::uint16_t kCountsAndClocks = 3, kShowsSharing = 4;
  const MadeMachine made = made_machine({2, 3});
  store(made);
  write_file(path("end.bin"), std::string(0x500, '\0') + std::string("\x2a\0\0\0\x2b", 5));
  for (const bool write_back : {false, true}) {
    for (const bool shows : {false, true}) {
      SCOPED_TRACE(shows);
      const auto flags =
          static_cast<std::uint16_t>(shows ? kCountsAndClocks | kShowsSharing : kCountsAndClocks);
      write_file(path("bus.bin"), made.native(flags, write_back));
      import();
      EXPECT_EQ(verdict().at("verdict"), "match");
      const ProcessResult result = run({"verify", "two.citcat", "--memory", "end.bin", "--json"});
      if (!write_back || shows) {
        EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
        EXPECT_GE(Json::parse(result.out).at("final_memory").at("bytes"), 2);
      } else {
        EXPECT_EQ(result.exit_code, 2) << result.out;
        EXPECT_THAT(result.err, HasSubstr("the capture does not show who has a line"));
      }
    }
  }
}

TEST_F(MadeMachines, CountsAreNeeded) {
  store(made_machine({2, 3}));
  for (const char* const option : {"--ignore-counts=all", "--counts=branches"}) {
    const ProcessResult result =
        run({"import", "bus.bin", "--cpu", "p6", "--internal", "none", "-o", "two.citcat", option});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("counts of instructions"));
  }
}

TEST_F(MadeMachines, AValueThatNobodyWroteIsADivergence) {
  MadeMachine made = made_machine(kSeesBoth);
  for (MadeRecord& r : made.records) {
    // What processor 1 reads last at 500h, and goes on by.
    if (r.type != 2 || r.address != 0x500 || r.data[0] != 0x2a) continue;
    // It was never written: processor 0 wrote something else.
    for (MadeRecord& w : made.records) {
      if (w.type == 3 && w.address == 0x500) w.address = 0x600;
    }
  }
  store(made);
  import();
  const Json json = verdict();
  EXPECT_EQ(json.at("verdict"), "diverged");
  const Json& first = json.at("shared_bus").at("first");
  EXPECT_EQ(first.at("processor"), 1);
  EXPECT_EQ(first.at("address"), 0x500);
  EXPECT_EQ(json.at("shared_bus").at("from_nobody"), 1);
}

TEST_F(MadeMachines, APageHasTheVerdictOnAllOfThem) {
  MadeMachine made = made_machine({1, 12});
  // Processor 1 reads an old value of 500h time after time, and waits on whatever it is.
  unsigned reads = 0;
  for (MadeRecord& r : made.records) {
    const bool waits = r.type == 2 && r.address == 0x500 && r.place == 0x10 && r.data[0] != 0x2a;
    if (waits && ++reads == 2) r.data[0] = 0x07;
  }
  ASSERT_GE(reads, 3u);
  store(made);
  import();
  const Json json = verdict();
  for (const Json& its : json.at("processors")) EXPECT_EQ(its.at("verdict"), "match");
  ASSERT_EQ(json.at("verdict"), "diverged");
  const auto shown = [&](const char* page) {
    const std::string begin = "id=\"data-runs\">", text = read_file(path(page));
    const std::size_t at = text.find(begin) + begin.size();
    return Json::parse(text.substr(at, text.find("</script>", at) - at)).at("verdict");
  };
  EXPECT_EQ(run({"report", "two.citcat", "-o", "report.html"}).exit_code, 1);
  good({"view", "two.citcat", "--export", "view.html"});
  for (const char* page : {"report.html", "view.html"}) {
    const Json found = shown(page);
    EXPECT_EQ(found.at("state"), "diverged") << page;
    EXPECT_EQ(found.at("run"), 2) << page;
    EXPECT_THAT(found.at("text").get<std::string>(),
                HasSubstr(json.at("shared_bus").at("first").at("reason").get<std::string>()));
  }
  good({"view", "two.citcat", "--export", "view.html", "--unchecked"});
  EXPECT_EQ(shown("view.html").at("state"), "not compared");
}

TEST_F(MadeMachines, AClockThatFallsDoesNotTellWhoWasFirst) {
  MadeMachine made = made_machine({2, 3});
  made.records[made.records.size() / 2].clock -= 5;
  store(made);
  const ProcessResult result = run({"import", "bus.bin", "--cpu", "p6", "-o", "two.citcat"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("expected clocks that show which processor was first"));
}

/// A monitor that holds records back, or whose clock is coarse.
TEST_F(MadeMachines, AtOneClockTheFileHasTheOrder) {
  const auto told = [&](const std::string& command) {
    return good({"analyze", "two.citcat", "--tool", command, "--json"});
  };
  store(made_machine(kSeesBoth));
  import();
  const std::string sharing = told("sharing"), races = told("races");
  for (const std::uint32_t coarse : {12u, 1000000u}) {
    MadeMachine made = made_machine(kSeesBoth);
    for (MadeRecord& r : made.records) r.clock = r.clock / coarse * coarse;
    store(made);
    const ProcessResult result =
        run({"import", "bus.bin", "--cpu", "p6", "--internal", "0=side.0.csv", "--internal",
             "1=side.1.csv", "-o", "two.citcat"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the order of the file is taken as that of the bus"));
    EXPECT_EQ(verdict().at("verdict"), "match");
    EXPECT_EQ(told("races"), races);
    EXPECT_EQ(Json::parse(told("sharing")).at("sharing").at("routes"),
              Json::parse(sharing).at("sharing").at("routes"));
  }
}

/// INIT lost, come to one that goes on, or without what it is for.
TEST_F(MadeMachines, OnlyOneThatWaitsIsStarted) {
  constexpr std::uint8_t kOnInit = 18;
  const MadeMachine made = made_machine({2, 3}, true);
  const auto init = std::find_if(made.records.begin(), made.records.end(),
                                 [](const MadeRecord& r) { return r.type == kOnInit; });
  ASSERT_NE(init, made.records.end());
  const auto refused = [&](const MadeMachine& wrong, const char* reason) {
    store(wrong);
    const ProcessResult result = run({"import", "bus.bin", "--cpu", "p6", "-o", "two.citcat"});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr(reason));
  };
  MadeMachine lost = made;
  lost.records.erase(lost.records.begin() + (init - made.records.begin()));
  refused(lost, "processor 1 is running, and a SIPI starts only a processor that waits");
  MadeMachine early = made;
  constexpr std::uint8_t kFetches = 1, kOfDump = 16;
  const auto runs =
      std::find_if(early.records.begin(), early.records.end(), [](const MadeRecord& r) {
        return r.place >> 4 == 1 && r.type == kFetches && (r.flags & kOfDump) == 0;
      });
  ASSERT_NE(runs, early.records.end());
  MadeRecord added = *init;
  added.count = runs->count;
  added.clock = runs->clock - 1;
  early.records.insert(runs, added);
  refused(early, "processor 1 goes on after an INIT, without a SIPI");
}

/// Memory that processor 0 reads over and over.
TEST_F(MadeMachines, WhatADeviceWroteIsADevices) {
  constexpr std::uint8_t kReadsData = 2, kWritesData = 3, kAdapter = 14;
  MadeMachine made = made_machine({30, 1});
  const auto waits = [](const MadeRecord& r) { return r.type == kReadsData && r.address == 0x504; };
  const auto first = std::find_if(made.records.begin(), made.records.end(), waits);
  ASSERT_NE(first, made.records.end());
  MadeRecord written = *first;
  written.type = kWritesData;
  written.count = 0;
  written.place = kAdapter << 4;
  written.data[0] = 0x77;
  ++written.clock;
  auto next = made.records.insert(first + 1, written);
  for (++next; next != made.records.end(); ++next) {
    if (next->type == kWritesData && next->address == 0x504) break;
    if (waits(*next)) next->data[0] = 0x77;
  }
  for (const bool native : {false, true}) {
    store(made, native);
    import();
    const Json json = verdict();
    EXPECT_EQ(json.at("verdict"), "match") << json.dump(1);
    EXPECT_EQ(json.at("shared_bus").at("from_devices"), 1);
  }
}

TEST_F(MadeMachines, TheMarkOfAnInterruptedCaptureHasNoClock) {
  constexpr std::uint8_t kMark = 14, kMonitorFailed = 4;
  MadeMachine made = made_machine({2, 3});
  MadeRecord mark;
  mark.count = ~std::uint64_t{0};
  mark.type = kMark;
  mark.size = 1;
  mark.data[0] = kMonitorFailed;
  made.records.push_back(mark);
  store(made);
  const ProcessResult result = run({"import", "bus.bin", "--cpu", "p6", "-o", "two.citcat"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the capture was interrupted (monitor failed)"));
}

TEST_F(MadeMachines, ACaptureOfOneProcessorIsNoneOfThem) {
  store(made_machine({2, 3}));
  const ProcessResult info = run({"info", "bus.bin"});
  EXPECT_EQ(info.exit_code, 2);
  EXPECT_THAT(info.err, HasSubstr("say which one with --format machine-smp:P"));
  const Json one = Json::parse(good({"info", "bus.bin", "--format", "machine-smp:1", "--json"}));
  EXPECT_GT(one.at("transactions"), 0);
  EXPECT_THAT(run({"dump", "bus.bin"}).err, HasSubstr("with dump, --processor P"));
  EXPECT_EQ(run({"dump", "bus.bin", "--processor", "14"}).exit_code, 2);
  const ProcessResult mixed = run({"info", "bus.bin", "--format", "machine"});
  EXPECT_EQ(mixed.exit_code, 3);
  EXPECT_THAT(mixed.err, HasSubstr("a record of processor 1"));
}

TEST_F(MadeMachines, InternalValuesAreOfAProcessorEach) {
  store(made_machine({2, 3}));
  EXPECT_THAT(run({"import", "bus.bin", "--internal", "side.0.csv", "-o", "t.citcat"}).err,
              HasSubstr("each has a file of its own: --internal P=FILE"));
  EXPECT_THAT(run({"import", "bus.bin", "--internal", "0=side.0.csv", "--internal", "0=side.1.csv",
                   "-o", "t.citcat"})
                  .err,
              HasSubstr("processor 0 has two files"));
  EXPECT_THAT(
      run({"import", "bus.bin", "--cpu", "p6", "--internal", "5=side.0.csv", "-o", "t.citcat"}).err,
      HasSubstr("the capture shows 2 processors"));
}

/// Commands that work in several processes end with the same exit code as in one.
TEST_F(MadeMachines, FailAlikeWithAnyNumberOfJobs) {
  store(made_machine({2, 3}));
  import();
  const std::vector<std::vector<std::string>> commands{
      {"analyze", "two.citcat", "--tool", "watch"},
      {"analyze", "two.citcat", "--tool", "watch:at=500", "--where", "("},
      {"analyze", "two.citcat", "--tool", "count", "--from", "5"},
      {"analyze", "two.citcat", "--metric", "nothing"},
      {"replay", "two.citcat", "-o", "no/folder/run.kt"},
      {"replay", "two.citcat", "-o", "run.kt", "--format", "nothing"},
      {"verify", "two.citcat", "--memory", "missing.bin"},
      {"verify", "two.citcat", "--cache-model", "i486"},
      {"verify", "two.citcat", "--code", "missing.elf"},
  };
  for (const auto& command : commands) {
    std::vector<std::string> with_jobs = command;
    with_jobs.insert(with_jobs.end(), {"--jobs", "2"});
    const ProcessResult one = run(command), two = run(with_jobs);
    EXPECT_EQ(one.exit_code, two.exit_code)
        << command[0] << " " << command.back() << ": " << one.err << two.err;
    EXPECT_EQ(one.err, two.err) << command[0] << " " << command.back();
  }
}

/// Between two transactions of its processor.
TEST_F(MadeMachines, AMessageWithACountThatDoesNotFitIsNoticed) {
  constexpr std::uint8_t kMessage = 17;
  MadeMachine made = made_machine({2, 3});
  MadeRecord more;
  more.type = kMessage;
  more.size = 4;
  more.count = 1'000'000;
  more.place = 1 << 4;
  const auto of_second = [](const MadeRecord& r) { return r.place >> 4 == 1 && r.count > 2; };
  const auto at = std::find_if(made.records.begin(), made.records.end(), of_second);
  ASSERT_NE(at, made.records.end());
  more.clock = at->clock;
  made.records.insert(at, more);
  store(made);
  import();
  const Json bus = verdict().at("shared_bus");
  EXPECT_THAT(bus.at("first").value("reason", ""),
              HasSubstr("its count of instructions does not fit"));
}

TEST_F(MadeMachines, AreWhatInfoSays) {
  store(made_machine(kSeesBoth));
  import();
  const Json info = Json::parse(good({"info", "two.citcat", "--json"}));
  ASSERT_EQ(info.at("processors").size(), 2u);
  EXPECT_EQ(info.at("processors").at(1).at("processor"), 1);
  EXPECT_EQ(info.at("invalidations"), 0);
  const Json one = Json::parse(good({"info", "two.citcat", "--processor", "1", "--json"}));
  EXPECT_EQ(one.at("identity"), info.at("processors").at(1).at("identity"));
  EXPECT_GT(one.at("external_writes"), 0);
}

TEST_F(MadeMachines, AnExpressionNamesAProcessor) {
  store(made_machine({2, 3}));
  import();
  const auto counted = [&](const std::string& where) {
    return Json::parse(
        good({"analyze", "two.citcat", "--tool", "count", "--where", where, "--json"}));
  };
  const Json all = counted("level=0"), one = counted("processor=1"), rest = counted("!processor=1");
  const auto of = [](const Json& json, int p) {
    return json.at("processors").at(p).at("tools").at("count").at("instructions");
  };
  EXPECT_EQ(of(one, 1), of(all, 1));
  EXPECT_EQ(of(rest, 0), of(all, 0));
  EXPECT_EQ(of(one, 0), of(rest, 1));
  EXPECT_NE(of(one, 0), of(all, 0));
  EXPECT_THAT(run({"analyze", "two.citcat", "--tool", "count", "--where", "processor=2"}).err,
              HasSubstr("processor=2: the recording has 2 processors"));
  EXPECT_THAT(run({"analyze", "two.citcat", "--tool", "count", "--where", "processor=14"}).err,
              HasSubstr("expected a number of at most 13"));
}

TEST_F(MadeMachines, TellWhatTheyCommunicate) {
  store(made_machine(kSeesBoth));
  import();
  const Json json = Json::parse(
      good({"analyze", "two.citcat", "--tool", "sharing", "--tool", "races:top=9", "--json"}));
  const Json& sharing = json.at("sharing");
  for (const Json& route : sharing.at("routes")) EXPECT_EQ(route.at("bytes"), 1) << route.dump();
  EXPECT_EQ(sharing.at("lines"), 1);  // 500h to 51Fh
  // Both places are written by one and read by the other, and nothing orders that.
  EXPECT_EQ(json.at("races").at("pairs"), 2);
  for (const Json& race : json.at("races").at("races")) EXPECT_EQ(race.at("kind"), "one writes");
  EXPECT_THAT(run({"analyze", "two.citcat@1", "--tool", "races"}).err,
              HasSubstr("of several processors together"));
  EXPECT_THAT(run({"analyze", "two.citcat", "--tool", "races", "--tool", "count"}).err,
              HasSubstr("analyses one processor"));
}

}  // namespace
}  // namespace citcat::test
