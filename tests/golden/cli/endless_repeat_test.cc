// One instruction that goes on for thousands of millions of iterations: what bounds a command by
// time or memory is looked at within it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/flat_machine.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

/// REP STOSB at 5000h with ECX = FFFFFFFFh, in 32-bit code without pages.
std::string state_of(const char* cpu) {
  return flat_machine({{"cpu", cpu}, {"ram_bytes", 268435456}},
                      {{"ecx", "0xffffffff"}, {"edi", 1048576}});
}

class EndlessRepeat : public CitcatTest {
 protected:
  /// A 486 with a write-back cache, which shows no store.
  void import_cached() {
    write_file(file("state.json"), state_of("486"));
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=486 cache=write-back line=16 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n"
               "0,0,0,CODE_RD,5000,16,L,0,f3aa9090f3aa9090f3aa9090f3aa9090\n"
               "1,0,2,CODE_RD,6000,16,L,0,90909090909090909090909090909090\n");
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "-q"});
  }
  /// A 386, with a port access that the last iteration would make.
  void import_uncached() {
    write_file(file("state.json"), state_of("386"));
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n"
               "0,0,0,CODE_RD,5000,4,-,0,f3aa9090\n"
               "0,4294967295,5,IO_RD,60,1,-,0,00\n");
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "-q"});
  }
  /// Iterations in a listing.
  static int stored(std::string_view lines) {
    int count = 0;
    for (std::size_t at = 0; (at = lines.find("rep stosb", at)) != lines.npos; ++at) ++count;
    return count;
  }
  std::string said(const std::vector<std::string>& command) {
    const ProcessResult result = run(command);
    return result.out + result.err;
  }
};

TEST_F(EndlessRepeat, ExplainEndsWhenItsTimeIsUp) {
  import_uncached();
  EXPECT_THAT(said({"explain", "r.citcat", "--time", "1"}), HasSubstr("after 1 s"));
  import_cached();
  EXPECT_THAT(said({"explain", "r.citcat", "--time", "1", "--memory-limit", "8G"}),
              HasSubstr("after 1 s"));
}

TEST_F(EndlessRepeat, AReportShowsTheRunUpToIt) {
  import_uncached();
  EXPECT_THAT(said({"report", "r.citcat", "-o", "r.html", "--repeat-time", "1"}),
              HasSubstr("takes longer than 1 s (--repeat-time)"));
  EXPECT_TRUE(std::filesystem::exists(file("r.html")));
  EXPECT_THAT(said({"report", "r.citcat:0-0+5", "-o", "r.html"}),
              HasSubstr("r.citcat:0-0+5: the range must not lie within a REP"));
}

TEST_F(EndlessRepeat, ATraceEndsWithinIt) {
  import_uncached();
  for (const char* const checked : {"--from-start", "--unchecked"}) {
    SCOPED_TRACE(checked);
    const std::string lines = said({"cat", "r.citcat", "--format", "text", "--to", "0+3", checked});
    EXPECT_EQ(stored(lines), 3) << lines;
    good({"cat", "r.citcat", "--to", "0+3", checked});
    good({"replay", "r.citcat", "-o", "r.kt", "--to", "0+3", checked});
    const std::string written = said({"cat", "r.kt", "--format", "text"});
    EXPECT_EQ(stored(written), 3) << written;
  }
}

/// The comparison goes only a little beyond the place. With all of the REP it would take more
/// memory than the limit.
TEST_F(EndlessRepeat, ADebuggerGoesToAPlaceWithinIt) {
  import_cached();
  const ProcessResult result = run_shell(
      "printf '$?#3f$p1#a1$g#67' | \"$CITCAT\" debug r.citcat --stdio --at 0+5 "
      "--memory-limit 32M",
      file("."));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("$faffffff#"));  // ECX
}

TEST_F(EndlessRepeat, CtrlCEndsWhyWithinIt) {
  import_cached();
  const ProcessResult result = run_shell(
      "timeout --foreground -s INT -k 20 2 \"$CITCAT\" why r.citcat --register edi --memory-limit "
      "8G",
      file("."));
  EXPECT_EQ(result.exit_code, 124) << result.err;  // 137: it had to be killed
}

TEST_F(EndlessRepeat, CtrlCEndsAListingAndAComparisonWithinIt) {
  import_cached();
  for (const char* const command : {"cat r.citcat --from 5", "diff r.citcat r.citcat"}) {
    const ProcessResult result = run_shell("timeout --foreground -s INT -k 20 1.5 \"$CITCAT\" " +
                                               std::string(command) + " --memory-limit 8G",
                                           file("."));
    EXPECT_EQ(result.exit_code, 124) << command << result.err;  // 137: it had to be killed
    EXPECT_THAT(result.err, HasSubstr("interrupted"));
  }
}

TEST_F(EndlessRepeat, EveryCommandThatReplaysKeepsToItsMemory) {
  import_cached();
  const std::vector<std::vector<std::string>> commands = {
      {"verify", "r.citcat"},
      {"replay", "r.citcat"},
      {"replay", "r.citcat", "--unchecked"},
      {"explain", "r.citcat"},
      {"slim", "r.citcat", "-o", "s.citcat"},
      {"checkpoint", "r.citcat"},
      {"analyze", "r.citcat", "--tool", "count"},
      {"cat", "r.citcat"},
  };
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command[0]);
    command.insert(command.end(), {"--memory-limit", "32M"});
    const ProcessResult result = run(command);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("--memory-limit"));
  }
}

}  // namespace
}  // namespace citcat::testing
