// citcat debug, driven by the gdb of the system.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/gdb_script.h"
#include "unit/debugger/watched_program.h"

namespace citcat::testing {
namespace {

class DebugCommand : public CitcatTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gdb >/dev/null") != 0) GTEST_SKIP() << "no gdb here";
  }
  void import_linux() const { import_linux_sample("linux.citcat"); }
  /// gdb on the program of WatchedProgram, without what it says about evidence.
  std::string watched(const std::string& script, const std::string& more = "") const {
    test::WatchedProgram().store(file("watched.citcat").string());
    return gdb(more.empty() ? "watched.citcat --unchecked" : more, script);
  }
  /// What gdb says to these lines, given to it as a script.
  std::string gdb(const std::string& arguments, const std::string& script) const {
    return run_gdb(arguments, script, file(""));
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(DebugCommand, StepsBackOverInterruptsAndRepetitionsAsItSteppedOverThem) {
  import_sample("boot.citcat");
  // An interrupt within REP MOVSW is at 389+878.
  const std::string output = gdb("boot.citcat --at 389+868", R"(
set $i = 0
while $i < 40
  printf "forwards %d+%d %x %x %x %x\n", $instruction, $iteration, $eip, $esp, $ecx, $eflags
  stepi
  set $i = $i + 1
end
while $i > 0
  reverse-stepi
  printf "back %d+%d %x %x %x %x\n", $instruction, $iteration, $eip, $esp, $ecx, $eflags
  set $i = $i - 1
end
)");
  const std::vector<std::string> forwards = lines_with(output, "forwards ");
  std::vector<std::string> back = lines_with(output, "back ");
  std::reverse(back.begin(), back.end());
  ASSERT_EQ(forwards.size(), 40u) << output;
  EXPECT_EQ(forwards, back);
  EXPECT_EQ(forwards.front().substr(0, 8), "389+868 ");
  const auto in_handler = std::find_if(forwards.begin(), forwards.end(), [](const auto& line) {
    return line.substr(0, 6) == "389+0 ";
  });
  EXPECT_NE(in_handler, forwards.end()) << output;
}

TEST_F(DebugCommand, FindsWhoWroteBackwards) {
  import_linux();
  // As docs/howto/debug.md tells it.
  const std::string output = gdb("linux.citcat --at end", R"(
watch *(int*)0xc1c33a2c
reverse-continue
printf "at %d\n", $instruction
x/i $pc
monitor last-write 0xc1c33a2c 4
stepi
printf "value %x\n", *(int*)0xc1c33a2c
monitor seek 54144
printf "at %d\n", $instruction
monitor where
)");
  EXPECT_EQ(lines_with(output, "at "), (std::vector<std::string>{"100563", "54144"})) << output;
  EXPECT_TRUE(contains(output, "mov    %eax,-0x7c(%ebp)")) << output;
  EXPECT_TRUE(contains(output, "value c6025238")) << output;
  EXPECT_TRUE(contains(output, "protected mode, level 3")) << output;
}

TEST_F(DebugCommand, SaysWhichWatchpointsAMoveCannotMeet) {
  import_linux();
  const std::string output = gdb("linux.citcat --at 10", R"(
watch *(int*)0xc1c33a2c
watch *(int*)0x40000000
tbreak *$pc
continue
)");
  EXPECT_TRUE(contains(output, "watchpoint at 0x40000000: nothing is mapped there yet")) << output;
  EXPECT_FALSE(contains(output, "watchpoint at 0xc1c33a2c")) << output;
}

TEST_F(DebugCommand, AFaultIsAStepToItsHandlerAndBack) {
  import_linux();
  const std::string output = gdb("linux.citcat --at 54144", R"(
printf "at %d %x\n", $instruction, $eip
stepi
printf "at %d %x\n", $instruction, $cr2
printf "level %d\n", $cs & 3
reverse-stepi
printf "at %d %x\n", $instruction, $eip
)");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"54144 809e9f0", "54144 809e9f0", "54144 809e9f0"}))
      << output;
  EXPECT_EQ(lines_with(output, "level "), (std::vector<std::string>{"0"})) << output;
}

TEST_F(DebugCommand, BeginsAtTheDivergenceAndGoesBackFromThere) {
  const std::string samples = CITCAT_SOURCE_DIR "/samples/ibm5150/";
  std::string state = read_file(samples + "state.json");
  const std::string right = "\"si\":\"0x0000\"";
  ASSERT_TRUE(contains(state, right));
  state.replace(state.find(right), right.size(), "\"si\":\"0x1234\"");
  write_file(file("wrong.json"), state);
  good({"import", samples + "area5150.sr", "--cpu", "8088", "--initial-state", "wrong.json",
        "--start", "interrupt:0", "-o", "wrong.citcat"});
  const std::string output = gdb("wrong.citcat --at divergence", R"(
printf "at %d\n", $instruction
monitor where
continue
printf "at %d\n", $instruction
reverse-stepi
printf "at %d\n", $instruction
)");
  // PUSH SI stores another value than the bus showed: it never completes.
  EXPECT_EQ(lines_with(output, "at "), (std::vector<std::string>{"3", "3", "2"})) << output;
  EXPECT_TRUE(contains(output, "the replay writes another value")) << output;
  EXPECT_TRUE(contains(output, "No more reverse-execution history")) << output;
}

// As Visual Studio Code's C/C++ extension speaks to gdb (docs/howto/debug.md): its machine
// interface.
TEST_F(DebugCommand, AnswersTheMachineInterfaceOfGdb) {
  import_linux();
  write_file(file("mi"), R"(1-gdb-set auto-solib-add on
2-interpreter-exec console "set remotetimeout 60"
3-target-select remote | "$CITCAT" debug linux.citcat --stdio --at 100563
4-interpreter-exec console "info sharedlibrary"
5-thread-info
6-stack-list-frames 0 1000
7-data-list-register-values x 8
8-data-disassemble -s "$pc" -e "$pc + 3" -- 2
9-data-read-memory-bytes 0xc1c33a2c 4
10-exec-step-instruction
11-data-read-memory-bytes 0xc1c33a2c 4
12-interpreter-exec console "reverse-stepi"
13-data-read-memory-bytes 0xc1c33a2c 4
14-break-watch *(int*)0xc1c33a2c
15-exec-continue
16-gdb-exit
)");
  const ProcessResult result =
      run_shell("export CITCAT; gdb -nx -q --interpreter=mi <mi 2>&1", file(""));
  for (const char* const answer :
       {"3^connected", "5^done,threads=[{id=\"1\"",
        "6^done,stack=[frame={level=\"0\",addr=\"0xc4270abc\"",
        "7^done,register-values=[{number=\"8\",value=\"0xc4270abc\"}]",
        "inst=\"mov    %eax,-0x7c(%ebp)\"", "9^done,memory=[{begin=\"0xc1c33a2c\"",
        "14^done,wpt=", "reason=\"watchpoint-trigger\"", "16^exit"}) {
    EXPECT_TRUE(contains(result.out, answer)) << answer << "\n" << result.out;
  }
  const auto contents = [&](const std::string& answer) {
    for (const std::string& line : lines_with(result.out, answer + "^done,memory=")) {
      return line.substr(line.find("contents="), 19);
    }
    return std::string();
  };
  EXPECT_EQ(contents("9"), "contents=\"00000000\"");
  EXPECT_EQ(contents("11"), "contents=\"385202c6\"");
  EXPECT_EQ(contents("13"), "contents=\"00000000\"");
}

/// gdb leaves a breakpoint by a single step.
TEST_F(DebugCommand, AWatchpointIsMetFromABreakpointAtTheStore) {
  const std::string output = watched(R"(
break *0x7c0f
continue
watch *(int*)0x600
continue
printf "at %x\n", $pc
continue
continue
printf "at %x\n", $pc
reverse-continue
printf "at %x\n", $pc
info breakpoints
delete 1
reverse-continue
printf "at %x\n", $pc
)");
  EXPECT_EQ(lines_with(output, "at "), (std::vector<std::string>{"7c15", "7c15", "7c0f", "7c0f"}))
      << output;
  // Where a breakpoint of lower number is as well, gdb counts the watchpoint and prints the other.
  EXPECT_EQ(lines_with(output, "Old value = "), (std::vector<std::string>{"0", "1", "1"}))
      << output;
  EXPECT_EQ(lines_with(output, "New value = "), (std::vector<std::string>{"1", "2", "0"}))
      << output;
  EXPECT_TRUE(contains(output, "breakpoint already hit 3 times")) << output;
}

TEST_F(DebugCommand, StepsReportTheWatchpointsTheyPassOver) {
  const std::string output = watched(R"(
tbreak *0x7c0f
continue
watch *(int*)0x600
stepi
printf "at %x\n", $pc
stepi 2
printf "at %x\n", $pc
stepi 10
printf "at %x\n", $pc
reverse-stepi
printf "at %x\n", $pc
reverse-stepi 10
printf "at %x\n", $pc
)");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"7c15", "7c0f", "7c15", "7c0f", "7c0f"}))
      << output;
  EXPECT_EQ(lines_with(output, "Old value = "), (std::vector<std::string>{"0", "1", "2", "1"}))
      << output;
  EXPECT_EQ(lines_with(output, "New value = "), (std::vector<std::string>{"1", "2", "1", "0"}))
      << output;
}

TEST_F(DebugCommand, ReadsFaultsAndStringsReportWatchpointsWhileItSteps) {
  const std::string output = watched(R"(
tbreak *0x7c18
continue
rwatch *(int*)0x600
stepi
printf "at %x\n", $pc
delete
tbreak *0x7c33
continue
watch *(int*)0x808
stepi 4
printf "at %d+%d\n", $instruction, $iteration
reverse-stepi
printf "at %d+%d\n", $instruction, $iteration
delete
tbreak *0x7c35
continue
awatch *(int*)0x6ffc
watch *(int*)0x600
stepi
printf "at %x\n", $pc
stepi
printf "at %x\n", $pc
)");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"7c1d", "22+3", "22+2", "9000", "9006"}))
      << output;
  EXPECT_EQ(lines_with(output, "Value = "), (std::vector<std::string>{"5"})) << output;
  EXPECT_EQ(lines_with(output, "Old value = "),
            (std::vector<std::string>{"0", "287454020", "0", "5"}))
      << output;
  EXPECT_TRUE(contains(output, "Hardware access (read/write) watchpoint 6")) << output;
}

TEST_F(DebugCommand, SeveralWatchpointsAtOneInstructionAreAllReported) {
  const std::string output = watched(R"(
watch *(int*)0x700
watch *(int*)0x70c
watch *(short*)0x702
define go
  $arg0
  printf "at %x\n", $pc
end
go continue
go continue
go reverse-continue
go reverse-continue
go stepi
go stepi
go stepi
)");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"7c24", "7c24", "7c1d", "7c1d", "7c24", "7c24", "7c29"}))
      << output;
  // Each of the three, each time.
  for (const char* const which : {"1: *(int*)0x700", "2: *(int*)0x70c", "3: *(short*)0x702"}) {
    const std::string mark = std::string("Hardware watchpoint ") + which;
    // Once where it is set.
    EXPECT_EQ(lines_with(output, mark).size(), 4u) << mark << "\n" << output;
  }
}

/// `next` and `until` step in ranges, `advance` goes to a breakpoint of gdb's own.
TEST_F(DebugCommand, LongerStepsStopAtWatchpoints) {
  write_file(file("watched.s"), test::WatchedProgram::source());
  const ProcessResult linked = run_shell(
      "as --32 -g watched.s -o watched.o && ld -m elf_i386 -Ttext 0x7c00 watched.o -o watched.elf",
      file(""));
  if (linked.exit_code != 0) GTEST_SKIP() << "no assembler for 32-bit code here: " << linked.err;
  const std::string output = watched(R"(
symbol-file watched.elf
define at
  printf "at %x\n", $pc
end
tbreak *0x7c0f
continue
at
watch *(int*)0x600
next
at
until
at
advance *0x7c1d
at
next
at
next
at
next
at
reverse-next
at
)");
  EXPECT_EQ(lines_with(output, "at "), (std::vector<std::string>{"7c0f", "7c15", "7c15", "7c15",
                                                                 "7c15", "7c15", "7c18", "7c0f"}))
      << output;
  EXPECT_EQ(lines_with(output, "New value = "),
            (std::vector<std::string>{"1", "2", "3", "4", "5", "4"}))
      << output;
}

/// `finish` goes on to the return address, `reverse-finish` back to the call: a store in between
/// ends both, as it ends the call and the return themselves.
TEST_F(DebugCommand, FinishStopsAtWatchpoints) {
  write_file(file("watched.s"), test::WatchedProgram::source());
  const ProcessResult linked = run_shell(
      "as --32 -g watched.s -o watched.o && ld -m elf_i386 -Ttext 0x7c00 watched.o -o watched.elf",
      file(""));
  if (linked.exit_code != 0) GTEST_SKIP() << "no assembler for 32-bit code here: " << linked.err;
  const std::string output = watched(R"(
symbol-file watched.elf
define at
  printf "at %x\n", $pc
end
tbreak *0x7c40
continue
at
watch *(int*)0x6ff8
finish
at
finish
at
reverse-stepi
at
reverse-finish
at
reverse-finish
at
delete
tbreak *0x7c41
continue
watch *(int*)0x6ffc
reverse-finish
at
)");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"7c40", "7c41", "7c3c", "7c42", "7c40", "7c37", "7c37"}))
      << output;
  EXPECT_EQ(lines_with(output, "New value = ").size(), 3u) << output;
}

TEST_F(DebugCommand, TellsWhatIsWrongBeforeItStartsGdb) {
  EXPECT_EQ(run({"debug", "nothing.citcat"}).exit_code, 4);
  import_sample("boot.citcat");
  EXPECT_EQ(run({"debug", "boot.citcat", "--at", "nowhere"}).exit_code, 2);
  EXPECT_EQ(run({"debug", "boot.citcat", "--stdio", "--port", "0"}).exit_code, 2);
  EXPECT_EQ(run({"debug", "boot.citcat", "--gdb", "no-such-gdb"}).exit_code, 4);
}

TEST_F(DebugCommand, TalksAtATerminal) {
  import_sample("boot.citcat");
  const ProcessResult result = run_shell(
      "printf 'set confirm off\\nstepi\\nmonitor where\\nquit\\n' | "
      "script -qec \"'$CITCAT' debug boot.citcat --at 100 -- -nx\" /dev/null",
      file(""));
  EXPECT_TRUE(contains(result.out, "instruction 101 of 621")) << result.out;
}

TEST_F(DebugCommand, ServesSeveralAtOnceAndLeavesNothing) {
  import_sample("boot.citcat");
  const ProcessResult result = run_shell(R"(
mkdir tmp; export TMPDIR=$PWD/tmp
"$CITCAT" debug boot.citcat --port 0 --at 100 >port 2>/dev/null &
server=$!
until [ -s port ]; do sleep 0.05; done
port=$(cat port)
session() {
  gdb -nx -batch -ex 'set remotetimeout 60' -ex "target remote $port" \
    -ex "monitor seek $1" -ex 'maintenance flush register-cache' -ex 'print $instruction' 2>/dev/null
}
session 50 >first & one=$!
session 60 >second & two=$!
wait $one $two
grep -h '^\$1' first second
# A client that dies in the middle of it.
gdb -nx -batch -ex "target remote $port" -ex 'shell kill -9 $PPID' >/dev/null 2>&1
session 70 | grep '^\$1'
kill $server; wait $server
sleep 0.2
pgrep -f 'debug boot.citcat --port 0' | grep -qx $server && echo "left: the server"
ls tmp
)",
                                         file(""));
  EXPECT_EQ(result.out, "$1 = 50\n$1 = 60\n$1 = 70\n") << result.err;
}

/// The shell's lines behind a server of boot.citcat, whose address is in $address and whose process
/// is $server; what it says goes to the file "said". It is ended behind them.
std::string with_server(const std::string& way, const std::string& lines) {
  return R"(
rm -f address
"$CITCAT" debug boot.citcat )" +
         way + R"( --at 100 >address 2>said &
server=$!
until [ -s address ]; do sleep 0.05; done
address=$(cat address)
tcp=/dev/tcp/$(echo $address | tr : /)
)" + lines +
         R"(
kill $server; wait $server
)";
}

/// A page in a browser can have it send whatever it likes to any port of the machine, behind a head
/// of HTTP.
TEST_F(DebugCommand, TurnsAwayWhatIsNoGdb) {
  import_sample("boot.citcat");
  // The server may have closed before all is written.
  write_file(file("lines"), with_server("--port 0", R"(
trap '' PIPE
for first in 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n' 'GET / HTTP/1.1\r\n\r\n' '\x16\x03\x01'; do
  exec 3<>$tcp
  printf "$first"'$g#67' >&3
  timeout 20 cat <&3 | wc -c
  exec 3>&-
done
exec 3<>$tcp
printf '+$p8#a8' >&3
timeout 20 head -c 12 <&3; echo
exec 3>&-
)"));
  const ProcessResult result =
      run_shell("export CITCAT; bash lines; grep -c 'turned away' said", file(""));
  EXPECT_EQ(result.out, "0\n0\n0\n+$ef590100#f\n3\n") << read_file(file("said"));
}

TEST_F(DebugCommand, HasNoMoreSessionsThanItSaysAndLeavesNoZombies) {
  import_sample("boot.citcat");
  write_file(file("lines"), with_server("--port 0", R"(
for i in $(seq 10 25); do
  eval "exec $i<>$tcp"
  printf '+$p8#a8' >&$i
  eval "head -c 12 <&$i" >/dev/null
done
ps -o pid= --ppid $server | wc -l
exec 30<>$tcp
printf '+$p8#a8' >&30 2>/dev/null
timeout 20 cat <&30 2>/dev/null | wc -c
for i in $(seq 10 25); do eval "exec $i>&-"; done
for try in $(seq 100); do
  [ $(ps -o pid= --ppid $server | wc -l) = 0 ] && break
  sleep 0.1
done
ps -o stat= --ppid $server
exec 3<>$tcp
printf '+$p8#a8' >&3
timeout 20 head -c 12 <&3; echo
exec 3>&-
)"));
  const ProcessResult result =
      run_shell("export CITCAT; bash lines; grep -c '16 sessions' said", file(""));
  EXPECT_EQ(result.out, "16\n0\n+$ef590100#f\n1\n") << read_file(file("said"));
}

TEST_F(DebugCommand, ServesOnASocketThatOnlyItsOwnerCanOpen) {
  import_sample("boot.citcat");
  write_file(file("lines"), "umask 0\n" + with_server("--socket here", R"(
stat -c %a here
gdb -nx -batch -ex "target remote $address" -ex 'print $instruction' 2>/dev/null | grep '^.1'
"$CITCAT" debug boot.citcat --socket here >/dev/null 2>&1; echo "twice $?"
)") + R"(
[ -e here ] && echo "left: the socket"
"$CITCAT" debug boot.citcat --socket here >killed 2>/dev/null &
until [ -s killed ]; do sleep 0.05; done
kill -9 $!; wait $! 2>/dev/null
[ -S here ] || echo "it was to be left"
)" + with_server("--socket here", R"(
gdb -nx -batch -ex "target remote $address" -ex 'print $instruction' 2>/dev/null | grep '^.1'
)") + R"(
echo mine >here
"$CITCAT" debug boot.citcat --socket here 2>&1; echo "no socket $?"
cat here
)");
  const ProcessResult result = run_shell("export CITCAT; bash lines", file(""));
  EXPECT_EQ(result.out,
            "700\n$1 = 100\ntwice 2\n$1 = 100\n"
            "citcat: error: here: exists and is not a socket\nno socket 2\nmine\n")
      << result.err << read_file(file("said"));
}

TEST_F(DebugCommand, EndsWithItsClient) {
  import_sample("boot.citcat");
  const ProcessResult result = run_shell(R"(
mkdir tmp; export TMPDIR=$PWD/tmp
printf '$g#67' | "$CITCAT" debug boot.citcat --stdio >/dev/null; echo "ended $?"
ls tmp
)",
                                         file(""));
  EXPECT_EQ(result.out, "ended 0\n") << result.err;
}

}  // namespace
}  // namespace citcat::testing
