// IDtrace's files of the Linux sample, as a user makes and reads them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "golden/citcat_test.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

std::uint32_t word_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[at + i])} << (8 * i);
  }
  return value;
}

/// The records of programs. Linux has itself, and nothing else, from C0000000h on: an oracle for
/// the privilege level that no replay takes part in.
std::string of_programs(const std::string& kt, std::uint64_t& records,
                        std::uint64_t& instructions) {
  constexpr std::uint32_t kKernel = 0xc0000000;
  std::string kept;
  std::uint32_t last = 0;
  for (std::size_t at = 0; at < kt.size();) {
    const unsigned type = static_cast<std::uint8_t>(kt[at + 4]);
    const std::size_t size = 5 + (type & 15) + ((3 - (type & 15)) & 3) + 4 * (type >> 4);
    const std::uint32_t eip = word_at(kt, at);
    if (eip < kKernel) {
      kept += kt.substr(at, size);
      ++records;
      const bool further =
          eip == last && (type >> 4) != 0 && (kt[at + 5] == '\xf3' || kt[at + 5] == '\xf2');
      if (!further) ++instructions;
      last = eip;
    }
    at += size;
  }
  return kept;
}

std::set<std::string> distinct_lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

class Idtrace : public CitcatTest {
 protected:
  void SetUp() override {
    import_linux_sample("linux.citcat");
    good({"replay", "linux.citcat", "-o", "whole.kt", "--unchecked", "-q"});
    programs_ = of_programs(read_file(file("whole.kt")), records_, instructions_);
  }
  nlohmann::json json(const std::vector<std::string>& arguments) const {
    return nlohmann::json::parse(good(arguments));
  }

  std::string programs_;
  std::uint64_t records_ = 0, instructions_ = 0;
};

TEST_F(Idtrace, ExecutionTraceIsTheKtOfThePrograms) {
  ASSERT_GT(records_, 400U);
  good({"replay", "linux.citcat", "-o", "run.trc", "-q"});
  const auto converted = json({"convert", "run.trc", "--to", "kt", "-o", "run.kt", "--json"});
  EXPECT_EQ(converted.at("written"), records_);
  EXPECT_TRUE(read_file(file("run.kt")) == programs_);
  const auto count = json({"count", "run.trc", "--json"});
  EXPECT_EQ(count.at("executions"), instructions_);
  EXPECT_EQ(count.at("iterations"), records_ - instructions_);
  EXPECT_EQ(json({"info", "run.trc", "--json"}).at("kind"), "IDtrace trace");
  EXPECT_EQ(json({"info", "run.blk", "--json"}).at("kind"), "IDtrace blocks");
}

TEST_F(Idtrace, KtOfAScopeIsTheKtOfThePrograms) {
  for (const char* const name : {"user.kt", "user.kt.zst", "user.ktz"}) {
    good({"replay", "linux.citcat", "-o", name, "--where", "level=3", "-q"});
    EXPECT_TRUE(good({"cat", name}) == programs_) << name;
  }
  EXPECT_TRUE(good({"cat", "linux.citcat", "--where", "level=3"}) == programs_);
}

TEST_F(Idtrace, KtOfWindowsIsThatOfEachOneBehindTheOther) {
  std::string each;
  for (const auto& [from, to] :
       {std::pair{"1000", "1500"}, {"70000", "70001"}, {"149000", "149957"}}) {
    good({"replay", "linux.citcat", "-o", "part.kt", "--from", from, "--to", to, "-q"});
    each += read_file(file("part.kt"));
  }
  good({"replay", "linux.citcat", "-o", "windows.kt.zst", "--window",
        "1000-1500, 70000-70001, 149000-149957", "-q"});
  EXPECT_TRUE(good({"cat", "windows.kt.zst"}) == each);
  // Each keeps its place in the run.
  const std::string line =
      good({"cat", "linux.citcat", "--from", "70000", "--to", "70001", "--format", "csv"});
  const std::string windows = good({"cat", "windows.kt.zst", "--format", "csv"});
  EXPECT_NE(windows.find(line.substr(line.find('\n') + 1)), std::string::npos) << line;
}

TEST_F(Idtrace, KtOfAScopeThatAlwaysHoldsIsThatOfTheRunWithItsEventsAndProcesses) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--processes"}, {"--addresses", "offset"}}) {
    std::vector<std::string> all = {"replay", "linux.citcat", "-o", "all.kt.zst", "-q"};
    all.insert(all.end(), more.begin(), more.end());
    good(all);
    const std::string expected = good({"cat", "all.kt.zst", "--format", "csv"});
    EXPECT_NE(expected.find("external_write"), std::string::npos);
    all.insert(all.end(), {"--where", "level=0 | !level=0"});
    good(all);
    EXPECT_TRUE(good({"cat", "all.kt.zst", "--format", "csv"}) == expected) << all.back();
  }
}

TEST_F(Idtrace, EachRecordOfAScopeKeepsItsPlaceInTheRun) {
  const std::string whole = good({"cat", "linux.citcat", "--format", "csv"});
  const std::set<std::string> lines = distinct_lines(whole);
  for (const char* const where :
       {"level=3", "data=c1c33000-c1c33fff", "code=c43ed000-c43edfff", "interrupt"}) {
    const std::set<std::string> selected =
        distinct_lines(good({"cat", "linux.citcat", "--where", where, "--format", "csv"}));
    EXPECT_GT(selected.size(), 100U) << where;
    EXPECT_LT(selected.size(), lines.size()) << where;
    EXPECT_TRUE(std::includes(lines.begin(), lines.end(), selected.begin(), selected.end()))
        << where;
  }
}

TEST_F(Idtrace, GroupsThatCannotHaveFilesOfTheirOwnAreRefused) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"replay", "linux.citcat", "-o", "-"},
        {"analyze", "linux.citcat", "--tool", "din:to=/dev/stdout"},
        {"cat", "linux.citcat", "--format", "din"}}) {
    std::vector<std::string> split = line;
    split.insert(split.end(), {"--by", "level"});
    EXPECT_EQ(run(split).exit_code, 2) << line.front();
  }
  good({"analyze", "linux.citcat", "--tool", "din:to=run.din", "--by", "level", "-q"});
  EXPECT_FALSE(read_file(file("run.level=3.din")).empty());
}

TEST_F(Idtrace, GroupsAreFilesThatTogetherHaveAllRecords) {
  good({"replay", "linux.citcat", "-o", "run.kt", "--by", "level", "-q"});
  EXPECT_TRUE(read_file(file("run.level=3.kt")) == programs_);
  EXPECT_EQ(read_file(file("run.level=0.kt")).size() + programs_.size(),
            read_file(file("whole.kt")).size());
  const std::string csv = good({"cat", "linux.citcat", "--by", "level", "--format", "csv"});
  EXPECT_EQ(csv.substr(0, 6), "group,");
  EXPECT_NE(csv.find("\n\"level=3\","), std::string::npos);
  EXPECT_EQ(run({"cat", "linux.citcat", "--by", "level"}).exit_code, 2);
}

TEST_F(Idtrace, ExecutionTraceGoesThroughAPipe) {
  write_file(file("expected"), programs_);
  const ProcessResult piped = run_shell(
      "\"$CITCAT\" replay linux.citcat -o run.trc -q && cat run.trc | \"$CITCAT\" convert - "
      "--blocks run.blk --image run.code --to kt -o - | cmp - expected",
      file("").parent_path());
  EXPECT_EQ(piped.exit_code, 0) << piped.err << piped.out;
}

TEST_F(Idtrace, ProfileCountsWhatTheTraceHas) {
  good({"replay", "linux.citcat", "-o", "run.cnt", "-q"});
  const auto profile = json({"count", "run.cnt", "--json"});
  EXPECT_EQ(profile.at("instructions"), instructions_);
  good({"replay", "linux.citcat", "-o", "again.trc", "-q"});
  const auto trace = json({"count", "again.trc", "--json"});
  EXPECT_EQ(profile.at("mix"), trace.at("mix"));
  EXPECT_EQ(profile.at("blocks"), trace.at("blocks"));
}

/// One key is one thing, whichever of the two is asked.
TEST_F(Idtrace, CountsOfATraceAreThoseOfTheToolThatCounts) {
  for (const char* const level : {"level=3", "level=0"}) {
    SCOPED_TRACE(level);
    good({"replay", "linux.citcat", "-o", "run.trc", "--where", level, "-q"});
    const auto trace = json({"count", "run.trc", "--json"});
    const auto tool = json({"count", "linux.citcat", "--where", level, "--json", "-q"});
    const auto& counted = tool.at("tools").at("count");
    for (const char* const key : {"executions", "iterations"}) {
      EXPECT_EQ(trace.at(key), counted.at(key)) << key;
    }
    std::map<std::string, std::uint64_t> ours, theirs;
    for (const auto& row : counted.at("mix")) ours[row.at("mnemonic")] = row.at("count");
    for (const auto& row : trace.at("mix")) theirs[row.at("mnemonic")] = row.at("count");
    EXPECT_EQ(theirs, ours);
    std::uint64_t mixed = 0;
    for (const auto& [mnemonic, count] : theirs) mixed += count;
    EXPECT_EQ(mixed, trace.at("executions"));
    EXPECT_GE(trace.at("blocks").at("in_file"), trace.at("blocks").at("static"));
  }
}

TEST_F(Idtrace, RepeatsOfACacheTraceAreThoseOfTheExecutionTrace) {
  // The programs of the sample repeat nothing; its kernel does.
  good({"replay", "linux.citcat", "-o", "run.trc", "--where", "level=0", "-q"});
  good({"replay", "linux.citcat", "-o", "cache.trc", "--where", "level=0", "--format",
        "idtrace:content=cache,line=32,repeats", "-q"});
  const auto sum = [&](const char* name, const char* key) {
    std::uint64_t total = 0;
    const auto repeats = json({"rep", name, "--json"}).at("repeats");
    for (const auto& row : repeats) total += row.at(key).get<std::uint64_t>();
    return total;
  };
  EXPECT_GT(sum("run.trc", "begun"), 100U);
  EXPECT_EQ(sum("run.trc", "begun"), sum("cache.trc", "begun"));
  EXPECT_EQ(sum("run.trc", "iterations"), sum("cache.trc", "iterations"));
  EXPECT_EQ(json({"info", "cache.trc", "--json"}).at("trace"), "cache");
}

/// "mov eax, ebx" is one field: every row of CSV has those of the head.
TEST_F(Idtrace, RowsOfCsvHaveTheFieldsOfTheHead) {
  good({"replay", "linux.citcat", "-o", "run.trc", "-q"});
  good({"replay", "linux.citcat", "-o", "profile.cnt", "-q"});
  for (const char* const name : {"run.trc", "run.blk", "profile.cnt"}) {
    const std::string text = good({"view", name, "--to", "500", "--format", "csv"});
    std::istringstream in(text);
    std::set<std::size_t> counts;
    for (std::string line; std::getline(in, line);) {
      std::size_t fields = 1;
      bool quoted = false;
      for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (c == ',' && !quoted) ++fields;
      }
      counts.insert(fields);
    }
    EXPECT_EQ(counts.size(), 1U) << name << "\n" << text.substr(0, 2000);
  }
}

TEST_F(Idtrace, AnotherTraceThanAnExecutionTraceIsNoKt) {
  good({"replay", "linux.citcat", "-o", "branch.trc", "--format", "idtrace:content=branch", "-q"});
  EXPECT_EQ(json({"info", "branch.trc", "--json"}).at("trace"), "branch");
  write_file(file("branch.blk"), std::string("\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0", 16));
  write_file(file("branch.code"), "");
  const ProcessResult result = run({"convert", "branch.trc", "--to", "kt", "-o", "run.kt"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("branch.trc:0: expected an execution trace"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace citcat::testing
