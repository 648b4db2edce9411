// Every command under faults of the system: calls that fail, that do half, that the program does
// not survive, and no memory. Whatever happens, an output's name shows the old file or the whole
// new one, the exit status tells failure from answers, and the next run puts everything right.
//
// The ordinary tests try a call of some kinds with each command; CITCAT_FAULTS=N tries every call
// of every kind, or N of them where there are more, and CITCAT_FAULT_SEED chooses others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

unsigned setting(const char* name, unsigned usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

struct Command {
  const char* name;
  const char* arguments;
  bool writes;  ///< the file "out"; others: the same text whenever they succeed
};

constexpr const char* kImport =
    "import " CITCAT_SOURCE_DIR
    "/samples/ibm5150/area5150.sr --cpu 8088 --initial-state " CITCAT_SOURCE_DIR
    "/samples/ibm5150/state.json --start interrupt:0 -o out -q";

const Command kCommands[] = {
    {"import", kImport, true},
    {"replay", "replay r.citcat -o out -q", true},
    {"slim", "slim r.citcat -o out -q", true},
    {"repair", "repair r.citcat -o out -q", true},
    {"convert", "convert " CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr --to csv -o out -q",
     true},
    {"verify", "verify r.citcat -q", false},
    {"info", "info r.citcat", false},
    {"check", "check r.citcat", false},
    {"cat", "cat r.citcat", false},
    {"dump", "dump r.kt --to 20", false},
    {"explain", "explain r.citcat", false},
    {"analyze", "analyze r.citcat --tool count --tool memory --json", false},
    {"report", "report r.citcat -o out -q --explain-time 0", true},
    {"session", "session r.citcat -q < script", false},
    {"debug", "debug r.citcat --stdio -q < packets", false},
    {"merge", "merge one.0001-of-0002.kt two.0002-of-0002.kt -o out -q", true},
    {"merge_analyses", "merge one.0001-of-0002 two.0002-of-0002 --json", false},
    {"replay_of_64_bits", "replay wide.citcat -o out -q", true},
    {"merge_of_64_bits", "merge w1.0001-of-0002.kt w2.0002-of-0002.kt -o out -q", true},
    {"convert_of_64_bits", "convert wide.csv --to native -o out -q", true},
};

class Faults : public CitcatTest, public ::testing::WithParamInterface<Command> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have the calls that the shim wants";
#endif
    import_sample("r.citcat");
    good({"replay", "r.citcat", "-o", "r.kt", "-q"});
    write_inputs(GetParam().name);
    before_ = files();
  }
  /// What only some of the commands read.
  void write_inputs(const std::string& name) const {
    if (name == "session") {
      write_file(
          file("script"),
          "go 50\nadd systemCalls @ /Level/0\ngo +100\nreport\ngo end\nreport\nwhere\nquit\n");
    } else if (name == "debug") {
      write_file(file("packets"),
                 "+$qSupported#37+$g#67+$m0,10#2a+$s#73+$bs#d5+$c#63+$bc#c5+$k#6b");
    } else if (name.starts_with("merge") && !name.ends_with("64_bits")) {
      good({"replay", "r.citcat", "--shard", "1/2", "-o", "one.kt", "-q"});
      good({"replay", "r.citcat", "--shard", "2/2", "-o", "two.kt", "-q"});
      good({"analyze", "r.citcat", "--tool", "count", "--shard", "1/2", "-o", "one", "-q"});
      good({"analyze", "r.citcat", "--tool", "count", "--shard", "2/2", "-o", "two", "-q"});
    } else if (name.ends_with("64_bits")) {
      write_file(file("wide.json"),
                 R"({"cpu":"x86-64","registers":{"rip":"0x1001000","efer":"0x901","cs":8,
                     "cs.limit":"0xffffffff","cs.attributes":"0xc09b","cr0":"0x11"}})");
      write_file(file("wide.csv"),
                 "#citcat-capture 1 cpu=x86-64 cache=none bus=8 mask=ffffffff\n"
                 "icount,rep,type,addr,size,data\n"
                 "0,0,CODE_RD,1001000,8,9090909090909090\n"
                 "4,0,CODE_RD,1001008,8,9090909090909090\n");
      good({"import", "wide.csv", "--initial-state", "wide.json", "-o", "wide.citcat", "-q"});
      good({"replay", "wide.citcat", "--shard", "1/2", "-o", "w1.kt", "-q"});
      good({"replay", "wide.citcat", "--shard", "2/2", "-o", "w2.kt", "-q"});
    }
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(file(""))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  ProcessResult under(const std::string& settings, const std::string& arguments) const {
    return run_shell(
        "exec env LD_PRELOAD=" CITCAT_FAULT_SHIM " " + settings + " \"$CITCAT\" " + arguments,
        file(""));
  }
  std::map<std::string, unsigned> calls_of(const std::string& arguments) const {
    EXPECT_EQ(under("CITCAT_SHIM_COUNTS=counts", arguments).exit_code, 0);
    std::istringstream lines(read_file(file("counts")));
    std::map<std::string, unsigned> counts;
    std::string name;
    for (unsigned n = 0; lines >> name >> n;) counts[name] = n;
    std::filesystem::remove(file("counts"));
    return counts;
  }
  /// One run with a fault; then whatever it left is looked at and put right.
  void try_fault(const std::string& fault, const std::string& whole) const {
    const Command& command = GetParam();
    SCOPED_TRACE(std::string(command.name) + " with " + fault);
    if (command.writes) write_file(file("out"), "old");
    const ProcessResult result = under("CITCAT_SHIM=" + fault, command.arguments);
    const bool killed =
        fault.find("kill") != std::string::npos || fault.find("tear") != std::string::npos;
    // No fault makes the answer "no", and none of those that are told is bad input, but for what a
    // short read looks like; a fault that the command can do without is none.
    EXPECT_THAT(result.exit_code, AnyOf(Eq(0), Eq(4), Eq(killed ? 137 : 0), Eq(killed ? -9 : 0)))
        << result.err;
    if (!command.writes) {
      EXPECT_TRUE(result.exit_code != 0 || result.out == whole) << result.out;
      return;
    }
    const std::string left = read_file(file("out"));
    EXPECT_TRUE(left == "old" || left == whole) << left.size();
    EXPECT_TRUE(result.exit_code != 0 || left == whole);
    const ProcessResult again =
        run_shell("\"$CITCAT\" " + std::string(command.arguments), file(""));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_TRUE(read_file(file("out")) == whole);
    for (const char* name : {"out", "out.partial"}) std::filesystem::remove(file(name));
    EXPECT_EQ(files(), before_);
  }
  std::set<std::string> before_;
};

TEST_P(Faults, LeaveTheOldOutputOrTheWholeNewOne) {
  const std::map<std::string, unsigned> counts = calls_of(GetParam().arguments);
  const std::string whole =
      GetParam().writes ? read_file(file("out")) : under("", GetParam().arguments).out;
  std::filesystem::remove(file("out"));
  const unsigned most = setting("CITCAT_FAULTS", 1);
  // In ordinary runs each command has half of the kinds, not all the same.
  const bool some = std::getenv("CITCAT_FAULTS") == nullptr;
  const std::string name = GetParam().name;
  std::mt19937 random(
      std::accumulate(name.begin(), name.end(), setting("CITCAT_FAULT_SEED", 1),
                      [](unsigned sum, char c) { return 31 * sum + static_cast<unsigned>(c); }));
  struct Kind {
    const char* call;
    std::string how;
  };
  const Kind kinds[] = {{"write", std::to_string(ENOSPC)},
                        {"write", "short"},
                        {"write", std::to_string(EINTR)},
                        {"write", "tear"},
                        {"write", std::to_string(ENOSPC) + ":rest"},
                        {"read", std::to_string(EIO)},
                        {"read", "short"},
                        {"read", std::to_string(EINTR)},
                        {"open", std::to_string(EMFILE)},
                        {"open", std::to_string(EMFILE) + ":rest"},
                        {"fsync", std::to_string(EIO)},
                        {"rename", std::to_string(EIO)},
                        {"rename", "kill"},
                        {"malloc", std::to_string(ENOMEM) + ":rest"},
                        {"malloc", std::to_string(ENOMEM)},
                        {"mmap", std::to_string(ENOMEM)},
                        // From here on only where CITCAT_FAULTS is set.
                        {"close", std::to_string(EIO)},
                        {"close", std::to_string(EINTR)},
                        {"flock", std::to_string(ENOLCK)},
                        {"flock", std::to_string(EINTR)},
                        {"ftruncate", std::to_string(EIO)},
                        {"mkdir", std::to_string(ENOSPC)},
                        {"fsync", "kill"}};
  constexpr std::size_t kOrdinary = 16;
  for (const Kind& kind : std::span(kinds).first(some ? kOrdinary : std::size(kinds))) {
    if (some && random() % 2 != 0) continue;
    const auto found = counts.find(kind.call);
    ASSERT_NE(found, counts.end());
    for (unsigned i = 0; i < std::min(most, found->second); ++i) {
      const unsigned nth =
          found->second <= most ? i + 1 : 1 + static_cast<unsigned>(random() % found->second);
      try_fault(std::string(kind.call) + ":" + std::to_string(nth) + ":" + kind.how, whole);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, Faults, ::testing::ValuesIn(kCommands),
                         [](const auto& command) { return std::string(command.param.name); });

}  // namespace
}  // namespace citcat::testing
