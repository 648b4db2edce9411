// Windows of a run that another process opens and closes, and what is selected of a run as text.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

class Windows : public CitcatTest {
 protected:
  void SetUp() override { import_sample("ibm.citcat"); }
  /// What is printed goes into the pipe as one piece: of lines that follow one another the run may
  /// be over before the second.
  static inline const std::string kAtOnce = " | dd bs=4096 iflag=fullblock status=none >&3";
  /// A run of `analyze` that `writer`, commands of a shell with the pipe open as 3, steers.
  ProcessResult steered(const std::string& writer) const {
    return run_shell("mkfifo steer; (exec 3> steer; " + writer + ") & " +
                         "\"$CITCAT\" analyze ibm.citcat --tool count --tool cache --json --window "
                         "control:steer -q",
                     file(""));
  }
  std::string with(const std::string& window) const {
    return good({"analyze", "ibm.citcat", "--tool", "count", "--tool", "cache", "--json",
                 "--window", window, "-q"});
  }
  /// The decisions, without the comment.
  std::string decided() const {
    const std::string text = read_file(file("steer.windows"));
    return text.substr(text.find('\n') + 1);
  }
};

TEST_F(Windows, FromOutsideAreWhatWasWrittenAndAreRepeatedByTheirFile) {
  const ProcessResult run =
      steered("printf 'open 100\\nclose 120\\nopen 300\\nclose 301\\nopen 600\\n'" + kAtOnce);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "100-120\n300-301\n600-\n");
  EXPECT_EQ(run.out, with("100-120, 300-301, 600-"));
  EXPECT_EQ(run.out, with("file:steer.windows"));
}

TEST_F(Windows, FromOutsideWithoutAPlaceBeginWhereTheRunIs) {
  const ProcessResult run = steered("echo open >&3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "0-\n");
  EXPECT_EQ(run.out, with("0-"));
}

TEST_F(Windows, ThatNobodyOpensAreNone) {
  const ProcessResult run = steered("echo close >&3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "");
  EXPECT_EQ(run.out, with("file:steer.windows"));
  EXPECT_EQ(run.out, with("none"));
}

TEST_F(Windows, FromOutsideGoOnBehindALineInAnotherLanguage) {
  const ProcessResult run =
      steered("printf 'open 5\\nshut 7\\nclose 9 10\\n%0300d\\nopen x\\nclose 12\\n' 0" + kAtOnce);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "5-12\n");
  EXPECT_EQ(run.out, with("5-12"));
  for (const char* const message :
       {"steer:7: expected open or close, found \"shut\"; the line has no effect",
        "steer:14: expected open or close with a number or none, found \"close 9 10\"",
        "steer:25: expected open or close, found a line of more than 256 bytes",
        "steer:326: expected open or close with a number or none, found \"open x\""}) {
    EXPECT_NE(run.err.find(message), std::string::npos) << message << "\n" << run.err;
  }
}

TEST_F(Windows, FromOutsideMayBeRefusedWithoutEnd) {
  const ProcessResult run = steered(
      "(yes shut | head -500; echo open 3) | dd bs=4096 "
      "iflag=fullblock status=none >&3");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(decided(), "3-\n");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 20) << run.err;
}

TEST_F(Windows, FromOutsideMayBeAFileThatSaysNothing) {
  write_file(file("steer"), "shut 5\n");
  const ProcessResult result =
      run({"count", "ibm.citcat", "--json", "-q", "--window", "control:steer"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(decided(), "");
}

TEST_F(Windows, OfAFileMustBeInOrder) {
  write_file(file("list"), "1-5\n# more\n4-9\n");
  const ProcessResult result = run({"count", "ibm.citcat", "--window", "file:list"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("list:11: expected FROM-TO"), std::string::npos) << result.err;
}

TEST_F(Windows, DumpPrintsWhatIsSelectedAsOfItsTrace) {
  for (const char* const format : {"text", "json", "csv"}) {
    good({"replay", "ibm.citcat", "-o", "part.kt.zst", "--window", "10-20, 40-60", "-q"});
    const std::string expected = good({"dump", "part.kt.zst", "--format", format});
    EXPECT_EQ(good({"dump", "ibm.citcat", "--window", "10-20, 40-60", "--format", format}),
              expected);
  }
  const std::string split =
      good({"dump", "ibm.citcat", "--by", "level", "--to", "50", "--format", "csv"});
  EXPECT_EQ(split.find("group,kind"), 0U);
  EXPECT_NE(split.find("\"level=0\",instruction,49"), std::string::npos) << split;
  EXPECT_EQ(run({"dump", "ibm.citcat", "--where", "level=0", "--state"}).exit_code, 2);
  EXPECT_EQ(run({"dump", "part.kt.zst", "--where", "level=0"}).exit_code, 3);
}

/// Windows that events open, beside those of the same instructions as the trace shows them.
class WindowsOfLinux : public CitcatTest {
 protected:
  void SetUp() override { import_linux_sample("linux.citcat"); }
  const std::vector<nlohmann::json>& trace() const {
    static const std::vector<nlohmann::json> all = [this] {
      std::vector<nlohmann::json> records;
      std::istringstream lines(good({"cat", "linux.citcat", "--json", "-q", "--to", kEnd}));
      for (std::string line; std::getline(lines, line);) {
        records.push_back(nlohmann::json::parse(line));
      }
      return records;
    }();
    return all;
  }
  /// Numbers of the records that `is` holds for; of an instruction once.
  template <class Is>
  std::vector<std::uint64_t> where(Is is) const {
    std::vector<std::uint64_t> found;
    for (const nlohmann::json& record : trace()) {
      if (!record.contains("number") || !is(record)) continue;
      const auto number = record.at("number").get<std::uint64_t>();
      if (found.empty() || found.back() != number) found.push_back(number);
    }
    return found;
  }
  static auto event(const std::string& kind, const std::string& key, const nlohmann::json& value) {
    return
        [=](const nlohmann::json& r) { return r.value("event", "") == kind && r.at(key) == value; };
  }
  static auto instruction_at(const std::string& eip) {
    return [=](const nlohmann::json& r) { return r.contains("text") && r.at("eip") == eip; };
  }
  /// Stretches of `length` that begin at each of these outside of one.
  static std::string stretches(const std::vector<std::uint64_t>& begins, std::uint64_t length) {
    std::string text;
    std::uint64_t end = 0;
    for (const std::uint64_t begin : begins) {
      if (begin < end) continue;
      end = begin + length;
      text += (text.empty() ? "" : ", ") + std::to_string(begin) + "-" + std::to_string(end);
    }
    return text.empty() ? "none" : text;
  }
  nlohmann::json counted(const std::string& window) const {
    return nlohmann::json::parse(
               good({"count", "linux.citcat", "--json", "-q", "--to", kEnd, "--window", window}))
        .at("tools")
        .at("count");
  }
  static inline const std::string kEnd = "60000";
};

TEST_F(WindowsOfLinux, BeginAtEventsOfAVectorAPortAProcedureAndASystemCall) {
  const auto faults = where(event("exception", "vector", 14));
  EXPECT_EQ(faults.size(), 9U);
  EXPECT_EQ(counted("from exceptions:14 for 100"), counted(stretches(faults, 100)));
  EXPECT_EQ(counted("from exceptions:0xd for 100"), counted("none"));
  const auto timer = where(event("interrupt", "vector", 0x30));
  EXPECT_EQ(timer.size(), 1U);
  EXPECT_EQ(counted("from interrupts:0x30 for 50"), counted(stretches(timer, 50)));
  const auto mask = where(
      [](const nlohmann::json& r) { return r.contains("event") && r.value("port", "") == "21"; });
  EXPECT_FALSE(mask.empty());
  EXPECT_EQ(counted("from port:0x21 for 1000"), counted(stretches(mask, 1000)));
  const auto procedure = where(instruction_at("c491bc40"));
  EXPECT_FALSE(procedure.empty());
  EXPECT_EQ(counted("from procedure:c491bc40 for 10"), counted(stretches(procedure, 10)));
}

TEST_F(WindowsOfLinux, EndAtAnotherEventOrAfterSoManyWhateverComesFirst) {
  const auto begins = where(event("exception", "vector", 14));
  const auto ends = where(event("interrupt", "vector", 0x30));
  std::string until, first;
  std::uint64_t end = 0;
  for (const std::uint64_t begin : begins) {
    if (begin < end) continue;
    const auto next =
        std::find_if(ends.begin(), ends.end(), [&](std::uint64_t e) { return e > begin; });
    end = next != ends.end() ? *next : 1u << 30;
    until += (until.empty() ? "" : ", ") + std::to_string(begin) + "-" + std::to_string(end);
  }
  EXPECT_EQ(counted("from exceptions:14 until interrupts"), counted(until));
  EXPECT_EQ(counted("from exceptions:14 until interrupts for 100"),
            counted(stretches(begins, 100)));
}

TEST_F(WindowsOfLinux, BeginWhereAnAddressIsWrittenOrAnotherProcessRuns) {
  const auto address = trace().at(1).at("addresses").at(0).get<std::string>();  // of a POP
  const auto written = where([&](const nlohmann::json& r) {
    return r.contains("text") && r.at("text").get<std::string>().starts_with("push") &&
           r.at("addresses").back() == address;
  });
  ASSERT_FALSE(written.empty());
  const nlohmann::json found = counted("from write:" + address + " for 1");
  EXPECT_GE(found.at("executions").get<std::uint64_t>(), written.size());
  EXPECT_EQ(counted("from write:00000001 for 1"), counted("none"));
  EXPECT_EQ(counted("from process:01d1c000 for 20").at("executions"), 20U);
}

TEST_F(WindowsOfLinux, AreWarmedUpForByModelsAlone) {
  const auto cache = [&](const std::vector<std::string>& more) {
    std::vector<std::string> ask = {"analyze", "linux.citcat", "--json", "-q",    "--tool", "count",
                                    "--tool",  "cache",        "--tool", "bpred", "--tool", "tlb"};
    ask.insert(ask.end(), more.begin(), more.end());
    return nlohmann::json::parse(good(ask)).at("tools");
  };
  const auto both = cache({"--to", "20000"}), first = cache({"--to", "10000"});
  const auto warm = cache({"--window", "10000-20000, warm 10k"});
  for (const char* const side : {"code", "data"}) {
    for (const char* const key : {"references", "fills"}) {
      const auto of = [&](const nlohmann::json& tools) {
        return tools.at("cache").at(side).at(key).get<std::uint64_t>();
      };
      EXPECT_EQ(of(warm), of(both) - of(first)) << side << " " << key;
    }
  }
  const auto branches = [](const nlohmann::json& tools, const char* counter) {
    return tools.at("bpred").at("correct").at(counter).get<std::uint64_t>();
  };
  EXPECT_EQ(branches(warm, "two_bit"), branches(both, "two_bit") - branches(first, "two_bit"));
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const auto misses = [&](const nlohmann::json& tools) {
      return tools.at("tlb").at("pages").at(kind).at("misses").get<std::uint64_t>();
    };
    EXPECT_EQ(misses(warm), misses(both) - misses(first)) << kind;
  }
  EXPECT_EQ(warm.at("count"), counted("10000-20000"));
  EXPECT_EQ(counted("every 10k for 1k, warm 2k"), counted("every 10k for 1k"));
}

TEST_F(WindowsOfLinux, AreRefusedWhereTheyMeanNothing) {
  for (const auto& [window, reason] : std::vector<std::pair<std::string, std::string>>{
           {"from calls", "expected until or for, found the end"},
           {"from 5 for 3", "expected an event, found \"5\""},
           {"from interrupts:300 for 3", "expected a number of at most 255, found \"300\""},
           {"from procedure for 3", "expected procedure:VALUE, found \"procedure\""},
           {"from calls:7 for 3", "expected calls, found \"calls:7\""},
           {"every 10 calls for 3, warm 5", "it is not known beforehand when they open"}}) {
    const ProcessResult result = run({"count", "linux.citcat", "--window", window});
    EXPECT_EQ(result.exit_code, 2) << window;
    EXPECT_NE(result.err.find(reason), std::string::npos) << window << ": " << result.err;
  }
}

}  // namespace
}  // namespace citcat::testing
